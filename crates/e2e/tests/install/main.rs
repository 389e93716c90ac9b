//! nacre into and out of a cluster: by its own command line and by Helm, who may do what once it is there, and whether it is
//! allowed anything that it does not need.

mod helm;
mod life;
mod matrix;
mod privileges;
mod watched;
