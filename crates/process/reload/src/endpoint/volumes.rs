//! What watched paths are called in requests.

use std::path::Path;

use crate::progress::{Progress, VolumeProgress};

/// The last part of each path; the whole path where two end alike, or it has no last part. In the order of the flags.
pub(crate) fn names(progress: &Progress) -> Vec<String> {
    let last_parts: Vec<Option<&str>> = progress
        .volumes
        .iter()
        .map(|volume| last_part(&volume.path))
        .collect();
    let name = |(volume, last): (&VolumeProgress, &Option<&str>)| match last {
        Some(name) if last_parts.iter().filter(|other| *other == last).count() == 1 => (*name).to_owned(),
        _ => volume.path.display().to_string(),
    };
    progress.volumes.iter().zip(&last_parts).map(name).collect()
}

/// Which of the watched paths is meant: by its name or its whole path; without either the only one.
///
/// # Errors
/// A status and a sentence for the client.
pub(crate) fn select(progress: &Progress, asked: Option<&str>) -> Result<usize, (u16, String)> {
    let names = names(progress);
    let Some(asked) = asked else {
        return match names.len() {
            1 => Ok(0),
            _ => Err((
                400,
                format!(
                    "several paths are watched: say which with ?volume=, of {}",
                    names.join(", ")
                ),
            )),
        };
    };
    let volumes = progress.volumes.iter();
    let found = volumes
        .zip(&names)
        .position(|(volume, name)| name == asked || volume.path.as_path() == Path::new(asked));
    found.ok_or_else(|| {
        (
            404,
            format!(
                "no watched path is called {asked:?}: there is {}",
                names.join(", ")
            ),
        )
    })
}

fn last_part(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Phase;

    fn progress(paths: &[&str]) -> Progress {
        let volume = |path: &&str| VolumeProgress {
            path: path.into(),
            seen: None,
            told: None,
            loaded: None,
        };
        Progress {
            volumes: paths.iter().map(volume).collect(),
            phase: Phase::Starting,
            deaf: None,
        }
    }

    #[test]
    fn paths_are_known_by_their_last_part_unless_two_end_alike() {
        let progress = progress(&["/etc/app", "/etc/site/", "/srv/app", "/", "certificates"]);
        assert_eq!(
            names(&progress),
            ["/etc/app", "site", "/srv/app", "/", "certificates"]
        );
        for (asked, index) in [
            ("site", 1),
            ("/etc/site", 1),
            ("/srv/app", 2),
            ("/", 3),
            ("certificates", 4),
        ] {
            assert_eq!(select(&progress, Some(asked)), Ok(index), "{asked}");
        }
        assert_eq!(select(&progress, Some("app")).unwrap_err().0, 404);
        assert_eq!(select(&progress, None).unwrap_err().0, 400);
    }

    #[test]
    fn the_only_one_needs_no_name() {
        assert_eq!(select(&progress(&["/etc/app"]), None), Ok(0));
    }
}
