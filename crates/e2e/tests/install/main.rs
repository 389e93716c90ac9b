//! nacre into and out of a cluster: by its own command line and by Helm, who may do what once it is there, and whether it is
//! allowed anything that it does not need.

mod helm;
mod life;
mod matrix;
mod privileges;
mod privileges_of_migration;
mod privileges_of_operator;
mod privileges_of_view;
mod traces;
mod values;
mod watched;
