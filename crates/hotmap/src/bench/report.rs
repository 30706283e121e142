//! What was measured, for people and for programs.

use std::fmt;

use serde::Serialize;

use super::{
    floor::Floors,
    process::Memory,
    statistics::{Summary, micros},
};
use std::time::Duration;

/// Everything one run found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The sub-command.
    pub(super) measurement: &'static str,
    /// Address of the API, or that it was a server of our own.
    pub(super) target: String,
    pub(super) machine: Machine,
    pub(super) rows: Vec<Row>,
    /// About the server's process; absent when it is not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<ServerFacts>,
    pub(super) floors: Floors,
}

/// Where the figures hold.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cpus: usize,
    pub(super) kernel: String,
}

impl Machine {
    pub(super) fn this() -> Self {
        let uname = rustix::system::uname();
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: uname.release().to_string_lossy().into_owned(),
        }
    }
}

/// One kind of operation.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) latency: Summary,
    /// Operations in a second of wall time.
    pub(super) per_second: f64,
    /// User and system time of the server for one operation; absent when the server is not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_cpu_us: Option<f64>,
    /// Bytes of one answer, where that says something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_bytes: Option<u64>,
    /// What an operation is, where the name does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

impl Row {
    /// A row over `operations` operations (which may differ from the number of samples) in `elapsed`.
    pub(super) fn new(
        name: impl Into<String>,
        samples: Vec<Duration>,
        operations: usize,
        elapsed: Duration,
        server_cpu: Option<Duration>,
    ) -> anyhow::Result<Self> {
        let name = name.into();
        let Some(latency) = Summary::of(samples) else {
            anyhow::bail!("{name}: nothing was measured")
        };
        Ok(Self {
            name,
            latency,
            per_second: operations as f64 / elapsed.as_secs_f64(),
            server_cpu_us: server_cpu.map(|cpu| micros(cpu) / operations as f64),
            answer_bytes: None,
            note: None,
        })
    }

    pub(super) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The server's process, when it is ours.
#[derive(Debug, Serialize)]
pub(super) struct ServerFacts {
    /// From starting the process to its ready line.
    pub(super) start_to_ready_ms: f64,
    /// From starting the process to a complete list of ConfigMaps over a new connection, and a ready node if it has one.
    pub(super) start_to_list_ms: f64,
    /// A node runs in the server's process.
    pub(super) has_node: bool,
    /// After start, before any load.
    pub(super) idle: Memory,
    /// At the end of the run.
    pub(super) end: Memory,
    pub(super) binary_bytes: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} · {} CPUs · Linux {}",
            self.measurement, self.target, self.machine.cpus, self.machine.kernel
        )?;
        let width = self
            .rows
            .iter()
            .map(|row| row.name.chars().count())
            .chain([FLOOR_SYNC.len(), 9])
            .max()
            .unwrap_or(9);
        let (p50, p99, max, rate, cpu) = ("p50", "p99", "max", "per second", "server CPU");
        writeln!(
            f,
            "\n{:width$}  {p50:>10}  {p99:>10}  {max:>10}  {rate:>10}  {cpu:>10}",
            "operation"
        )?;
        for row in &self.rows {
            let cpu = row.server_cpu_us.map_or_else(|| "–".to_owned(), time);
            write_line(
                f,
                width,
                &row.name,
                &row.latency,
                &format!("{:.0}", row.per_second),
                &cpu,
            )?;
        }
        write_line(f, width, FLOOR_SYNC, &self.floors.fdatasync, "", "")?;
        write_line(f, width, FLOOR_PUBLISH, &self.floors.publish, "", "")?;
        if let Some(mount_swap) = &self.floors.mount_swap {
            write_line(f, width, FLOOR_MOUNT_SWAP, mount_swap, "", "")?;
        }
        for row in &self.rows {
            if let Some(bytes) = row.answer_bytes {
                writeln!(f, "{}: answer of {}", row.name, size(bytes))?;
            }
            if let Some(note) = &row.note {
                writeln!(f, "{}: {note}", row.name)?;
            }
        }
        if self.floors.fdatasync_on_tmpfs {
            writeln!(
                f,
                "the store is on tmpfs, where fdatasync costs nothing: give --data-dir a real disk"
            )?;
        }
        let Some(server) = &self.server else { return Ok(()) };
        let memory = |memory: &Memory| {
            format!(
                "{} resident, {} of it anonymous",
                size(memory.resident_bytes),
                size(memory.anonymous_bytes)
            )
        };
        writeln!(f, "\nserver, idle after start: {}", memory(&server.idle))?;
        writeln!(f, "server, at the end: {}", memory(&server.end))?;
        writeln!(
            f,
            "start to ready: {:.0} ms; to a complete list{}: {:.0} ms",
            server.start_to_ready_ms,
            if server.has_node { " and a ready node" } else { "" },
            server.start_to_list_ms
        )?;
        writeln!(f, "binary: {}", size(server.binary_bytes))
    }
}

const FLOOR_SYNC: &str = "floor: write 4 KiB + fdatasync";
const FLOOR_PUBLISH: &str = "floor: rename + inotify";
const FLOOR_MOUNT_SWAP: &str = "floor: mount swap";

fn write_line(
    f: &mut fmt::Formatter<'_>,
    width: usize,
    name: &str,
    latency: &Summary,
    rate: &str,
    cpu: &str,
) -> fmt::Result {
    let (p50, p99, max) = (time(latency.p50_us), time(latency.p99_us), time(latency.max_us));
    writeln!(
        f,
        "{name:width$}  {p50:>10}  {p99:>10}  {max:>10}  {rate:>10}  {cpu:>10}"
    )
}

/// Microseconds in the unit that reads well.
fn time(micros: f64) -> String {
    match micros {
        ..1_000.0 => format!("{micros:.0} µs"),
        1_000.0..1_000_000.0 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// Bytes in the unit that reads well.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_shown_in_the_unit_that_reads_well() {
        for (micros, shown) in [
            (0.4, "0 µs"),
            (999.0, "999 µs"),
            (1_280.0, "1.28 ms"),
            (34_800_000.0, "34.80 s"),
        ] {
            assert_eq!(time(micros), shown);
        }
        for (bytes, shown) in [(17, "17 B"), (1536, "1.5 KiB"), (20 << 20, "20.0 MiB")] {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn a_report_reads_as_a_table_and_as_json() {
        let sample = || vec![Duration::from_micros(300), Duration::from_micros(400)];
        let floor = Summary::of(sample()).expect("samples");
        let row = Row::new(
            "create, 1 client",
            sample(),
            2,
            Duration::from_millis(1),
            Some(Duration::from_micros(180)),
        );
        let report = Report {
            measurement: "writes",
            target: "own server".to_owned(),
            machine: Machine {
                cpus: 2,
                kernel: "6.1".to_owned(),
            },
            rows: vec![row.expect("samples")],
            server: None,
            floors: Floors {
                fdatasync: floor,
                fdatasync_on_tmpfs: true,
                publish: floor,
                mount_swap: None,
            },
        };
        let text = report.to_string();
        assert!(
            text.contains(
                "create, 1 client                    300 µs      400 µs      400 µs        2000       90 µs"
            ),
            "{text}"
        );
        assert!(text.contains("the store is on tmpfs"), "{text}");
        let json = serde_json::to_value(&report).expect("serializable");
        assert_eq!(json["rows"][0]["server_cpu_us"], 90.0);
        assert_eq!(json["rows"][0]["latency"]["p50_us"], 300.0);
        assert!(json.get("server").is_none());
    }
}
