//! A file made from a template before anybody is told: `--render TEMPLATE:OUT`.

mod expand;

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hotmap_projection::Change;

use crate::target::{Fired, Target, TargetError, TargetKind};
use expand::expand;

pub use expand::{Syntax, Undefined};

/// A template, unpacked, may be this large; more is a mistake or an attack by compression.
const TEMPLATE_BYTES_MAX: u64 = 64 << 20;
/// What a gzip stream begins with, deflate being its only method.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];
/// What a file that is made anew may be used for: its readers often are another user.
const MODE: u32 = 0o644;

/// The environment that references stand for, by name.
pub type Variables = Arc<BTreeMap<String, String>>;

/// `TEMPLATE:OUT`, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderPaths {
    /// Where the template is; gzip is unpacked.
    pub template: PathBuf,
    /// The file that is made.
    pub out: PathBuf,
}

impl std::str::FromStr for RenderPaths {
    type Err = &'static str;

    fn from_str(raw: &str) -> Result<Self, Self::Err> {
        match raw.split_once(':') {
            Some((template, out)) if !template.is_empty() && !out.is_empty() && !out.ends_with('/') => {
                if template == out {
                    return Err("the template and the file that is made from it have to be two files");
                }
                Ok(Self {
                    template: template.into(),
                    out: out.into(),
                })
            }
            _ => Err("TEMPLATE:OUT is expected, such as /etc/app/app.yaml:/run/app/app.yaml"),
        }
    }
}

/// Makes one file from one template.
#[derive(Debug)]
pub struct Render {
    paths: RenderPaths,
    syntax: Syntax,
    undefined: Undefined,
    variables: Variables,
    name: String,
}

impl Render {
    /// A file at `paths.out` that follows `paths.template`.
    pub fn new(paths: RenderPaths, syntax: Syntax, undefined: Undefined, variables: Variables) -> Self {
        let name = format!("render {} to {}", paths.template.display(), paths.out.display());
        Self {
            paths,
            syntax,
            undefined,
            variables,
            name,
        }
    }

    /// Makes the file, if it would differ from the one that is there.
    fn render(
        paths: &RenderPaths,
        syntax: Syntax,
        undefined: Undefined,
        variables: &Variables,
    ) -> Result<(), RenderError> {
        let template = read_template(&paths.template)?;
        let lookup = |name: &str| variables.get(name).map(String::as_str);
        let content = expand(&template, syntax, undefined, lookup).map_err(|undefined| {
            let template = paths.template.clone();
            RenderError::Undefined {
                template,
                name: undefined.name,
                line: undefined.line,
            }
        })?;
        write_atomically(&paths.out, &content).map_err(|source| RenderError::Write {
            out: paths.out.clone(),
            source,
        })
    }
}

impl Target for Render {
    fn kind(&self) -> TargetKind {
        TargetKind::Render
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn limits_itself(&self) -> bool {
        // A write that has begun cannot be called back.
        true
    }

    fn fire<'a>(&'a self, _: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        let (paths, syntax, undefined) = (self.paths.clone(), self.syntax, self.undefined);
        let variables = Arc::clone(&self.variables);
        Box::pin(async move {
            // Templates may be large and disks slow.
            tokio::task::spawn_blocking(move || Self::render(&paths, syntax, undefined, &variables))
                .await
                .expect("rendering does not panic")
                .map(|()| Fired::Confirmed)
                .map_err(TargetError::from)
        })
    }
}

/// Why a file could not be made. The file that was there is still there, whole.
#[derive(Debug, thiserror::Error)]
enum RenderError {
    #[error("cannot read the template {}: {source}", .template.display())]
    Read { template: PathBuf, source: io::Error },
    #[error("the template {} holds more than {} MiB", .template.display(), TEMPLATE_BYTES_MAX >> 20)]
    TooLarge { template: PathBuf },
    #[error(
        "the template {} refers to {name} in line {line}, which is not set in the environment; set it, or leave such \
         references as they are with --render-undefined keep", .template.display()
    )]
    Undefined {
        template: PathBuf,
        name: String,
        line: usize,
    },
    #[error("cannot write {}: {source}", .out.display())]
    Write { out: PathBuf, source: io::Error },
}

impl From<RenderError> for TargetError {
    fn from(error: RenderError) -> Self {
        let (reason, is_temporary) = match &error {
            RenderError::Read { .. } => ("template", true),
            RenderError::TooLarge { .. } => ("template_size", false),
            RenderError::Undefined { .. } => ("undefined", false),
            RenderError::Write { .. } => ("write", true),
        };
        Self {
            message: error.to_string(),
            reason,
            is_temporary,
        }
    }
}

fn read_template(template: &Path) -> Result<Vec<u8>, RenderError> {
    let failed = |source| RenderError::Read {
        template: template.to_owned(),
        source,
    };
    let mut content = Vec::new();
    let file = File::open(template).map_err(failed)?;
    file.take(TEMPLATE_BYTES_MAX + 1)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.starts_with(&GZIP) {
        let mut unpacked = Vec::new();
        let decoder = flate2::read::MultiGzDecoder::new(content.as_slice());
        decoder
            .take(TEMPLATE_BYTES_MAX + 1)
            .read_to_end(&mut unpacked)
            .map_err(failed)?;
        content = unpacked;
    }
    if content.len() as u64 > TEMPLATE_BYTES_MAX {
        return Err(RenderError::TooLarge {
            template: template.to_owned(),
        });
    }
    Ok(content)
}

/// Replaces a file by one rename: a reader sees the old content or the new one. Mode and owner stay as they were. It is
/// not synced to the disk: after a power cut it is made again before anybody is told.
fn write_atomically(out: &Path, content: &[u8]) -> io::Result<()> {
    let before = match fs::metadata(out) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // Whoever watches the file is not woken for nothing.
    if before
        .as_ref()
        .is_some_and(|before| before.len() == content.len() as u64)
        && fs::read(out)? == content
    {
        return Ok(());
    }
    let name = out
        .file_name()
        .ok_or(io::ErrorKind::InvalidFilename)?
        .to_string_lossy();
    // One writer per file, so the name needs no randomness, and what a crash has left is written over.
    let staged = out.with_file_name(format!(".{name}.hotmap"));
    let written = stage(&staged, content, before.as_ref()).and_then(|()| fs::rename(&staged, out));
    if written.is_err() {
        // A full disk must not be kept full by half a file.
        let _ = fs::remove_file(&staged);
    }
    written
}

fn stage(staged: &Path, content: &[u8], like: Option<&fs::Metadata>) -> io::Result<()> {
    // A link that somebody has planted there is removed, not followed.
    match fs::remove_file(staged) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(staged)?;
    // Narrow while it is filled, so that nobody reads what the mode will forbid.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    if let Some(like) = like {
        // Only root can give files away; a file of one's own is one's own already.
        let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
    }
    file.set_permissions(Permissions::from_mode(
        like.map_or(MODE, |like| like.mode() & 0o7777),
    ))
}

#[cfg(test)]
mod tests;
