//! Scenarios and a model of deployments, played in a simulator: no server, no clock, no node.

mod model;
mod rollouts;
mod scenarios;
mod simulator;
