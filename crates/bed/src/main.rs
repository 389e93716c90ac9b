//! `bed`: a real cluster in a folder, from the command line.
fn main() {}
