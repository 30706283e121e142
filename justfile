# Every chore of the project. `just` lists them.

_list:
    @just --list

# Everything a change must pass.
test:
    scripts/test

# The main job, seen: nginx follows an edit of its ConfigMap.
demo:
    scripts/demo

# The long counts; run once per larger change.
soak:
    scripts/soak

# The tests of one crate, such as `just crate hotmap-store`.
crate name:
    cargo nextest run --package {{name}}

# Rewrites the schema tables from a Kubernetes 1.36 source tree.
schema dir:
    cargo xtask schema --from {{dir}}

# Checks every table against the fixtures of a Kubernetes 1.36 source tree.
oracle dir:
    cargo xtask oracle --from {{dir}}

# Writes docs/compatibility.md from its rows.
compatibility:
    cargo xtask compatibility

# Measures this machine; needs a release build.
bench *args:
    cargo run --release -- bench {{args}}

# What a release is made of, in target/dist: static binaries, .deb, image layouts, bills of materials, checksums.
dist *args:
    scripts/dist {{args}}
