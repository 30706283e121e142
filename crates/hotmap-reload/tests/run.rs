//! `hotmap-reload run`: what process 1 of a container has to do, as process 1 of a pid namespace and elsewhere.

#[path = "run/changes.rs"]
mod changes;
#[path = "run/hand_over.rs"]
mod hand_over;
#[path = "run/init.rs"]
mod init;
#[expect(dead_code, reason = "other tests need the rest of it")]
#[path = "support/program.rs"]
mod program;
#[path = "run/supervised.rs"]
mod supervised;
#[path = "run/terminal.rs"]
mod terminal;
#[path = "run/told_of.rs"]
mod told_of;
#[path = "run/volume.rs"]
mod volume;
