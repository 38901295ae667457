//! The files for people, against logs that are written by hand.

mod list;
mod progress_file;
mod reports;
mod story;
mod trouble;
mod world;
