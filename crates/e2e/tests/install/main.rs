//! Installing and uninstalling nacre, by its CLI and by Helm; permissions after the installation; and that nacre has no
//! permission that it does not need.

mod helm;
mod life;
mod matrix;
mod older;
mod privileges;
mod privileges_of_live_migration;
mod privileges_of_operator;
mod privileges_of_view;
mod traces;
mod values;
mod watched;
