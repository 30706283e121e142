//! Scenarios, crashes and a model of deployments, played in a simulator: no server, no clock, no node.

mod crashes;
mod model;
mod rollouts;
mod scenarios;
mod simulator;
