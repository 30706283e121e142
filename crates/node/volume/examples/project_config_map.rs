//! A ConfigMap volume without a cluster: keys become files, one of them under another name and mode.
//!
//! `cargo run -p hotmap-volume --features kubernetes --example project_config_map -- DIR`

use std::sync::Arc;

use hotmap_volume::{
    AtomicWriter, ConfigMapSource, Directory, Durability, FileMode, KeyToPath, Keys, Lookup, Options, Source,
    project,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let keys: Keys = [("app.yaml", "level: info\n"), ("run.sh", "#!/bin/sh\n")]
        .map(|(key, value)| (key.to_owned(), value.into()))
        .into();
    let config_map = Source::ConfigMap(ConfigMapSource {
        object: Lookup::Found(Arc::new(keys)),
        items: vec![
            KeyToPath {
                key: "app.yaml".to_owned(),
                path: "app.yaml".to_owned(),
                mode: None,
            },
            KeyToPath {
                key: "run.sh".to_owned(),
                path: "bin/run".to_owned(),
                mode: Some(FileMode::new(0o755)?),
            },
        ],
        optional: false,
    });
    // Every missing key would be named here, in the words of a kubelet, and nothing would be written.
    let payload = project(&[config_map], FileMode::DEFAULT)?;
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let writer = AtomicWriter::new(Directory::open(directory)?, options);
    for step in writer.plan(&payload)? {
        println!("{step:?}");
    }
    let written = writer.write(&payload)?;
    println!("{:?}: {}", written.outcome, written.revision);
    Ok(())
}
