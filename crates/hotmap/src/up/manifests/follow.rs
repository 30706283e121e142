//! Follows directories: what changes in them is applied, and what leaves them is named or deleted.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    convert::Infallible,
    io,
    path::Path,
    thread,
    time::Duration,
};

use anyhow::Context;
use hotmap_client::{Backoff, Client, DeleteParams};
use hotmap_projection::{Stopper, WatchConfig, Watcher};
use tokio::{
    sync::mpsc,
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

use super::{
    Source,
    apply::{Outcome, apply, is_final},
    apply_once,
    complaint::{Failed, complain},
    directory::{Directory, State, digest},
    files,
    record::{Entry, Place, Record},
    target::{ObjectId, Reference, Target},
};
use crate::{
    data_dir::write_state_file,
    output::{self, say},
};

/// What the API did not take is tried again after so long, and longer each time.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// A file may need what a later one makes, such as a namespace; so often all files are gone through at once.
const ROUNDS_MAX: u32 = 10;

/// The directories of `-f`, and what was applied from them.
pub(in crate::up) struct Followed {
    client: Client,
    prune: bool,
    directories: Vec<Directory>,
    /// What the other sources hold, at start.
    applied_once: Vec<ObjectId>,
    record: Record,
    /// Why the record is not on the disk, as it was said.
    unwritten: Option<String>,
    heard: mpsc::Receiver<usize>,
    _watching: Vec<Watching>,
    backoff: Backoff,
    retry: Option<Instant>,
}

/// A thread that watches. Dropping it ends that.
struct Watching(Stopper);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What one round over some directories came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Round {
    /// An object was made or changed.
    has_changed: bool,
    /// Something may be taken later.
    has_refused: bool,
}

impl Followed {
    /// Applies all sources, and begins to follow those that are directories.
    ///
    /// # Errors
    /// What is wrong with a source that is no directory, with the record in the data directory, or with the system's watches.
    pub(in crate::up) async fn start(
        client: Client,
        sources: &[Source],
        prune: bool,
        data_dir: &Path,
    ) -> anyhow::Result<Self> {
        let (mut directories, mut applied_once) = (Vec::new(), Vec::new());
        for source in sources {
            if let Source::Directory(path) = source {
                directories.push(Directory::new(path.clone()));
                continue;
            }
            for applied in apply_once(&client, std::slice::from_ref(source)).await? {
                say(applied.line());
                applied_once.push(applied.target.id);
            }
        }
        let data_dir = data_dir.to_owned();
        let (sender, heard) = mpsc::channel(directories.len().max(1));
        let watching = directories
            .iter()
            .enumerate()
            .map(|(index, directory)| watch(index, directory.absolute(), sender.clone()));
        let watching = watching.collect::<anyhow::Result<_>>()?;
        let record = spawn_blocking(move || Record::read(&data_dir)).await??;
        let mut followed = Self {
            client,
            prune,
            directories,
            applied_once,
            record,
            unwritten: None,
            heard,
            _watching: watching,
            backoff: Backoff::seeded(RETRY_MIN, RETRY_MAX),
            retry: None,
        };
        let all = Vec::from_iter(0..followed.directories.len());
        followed.pass(&all, true).await;
        Ok(followed)
    }

    /// Applies each change; ends only by being dropped.
    pub(in crate::up) async fn follow(mut self) -> Infallible {
        loop {
            let retry = self.retry;
            let again = async {
                match retry {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let changed = tokio::select! {
                Some(first) = self.heard.recv() => {
                    let mut changed = vec![first];
                    while let Ok(more) = self.heard.try_recv() {
                        changed.push(more);
                    }
                    changed.sort_unstable();
                    changed.dedup();
                    changed
                }
                () = again => Vec::from_iter(0..self.directories.len()),
            };
            self.pass(&changed, false).await;
        }
    }

    /// Brings the objects to what the directories say, as far as the API lets it.
    async fn pass(&mut self, directories: &[usize], is_start: bool) {
        let mut listed = HashSet::new();
        let mut last = Round::default();
        for number in 0..ROUNDS_MAX {
            last = Round::default();
            for &index in directories {
                if self.round(index, is_start && number == 0, &mut last).await {
                    listed.insert(index);
                }
            }
            if !(last.has_changed && last.has_refused) {
                break;
            }
        }
        for index in listed {
            last.has_refused |= !self.let_go(index).await;
        }
        last.has_refused |= !self.write_record().await;
        last.has_refused |= self.directories.iter().any(Directory::has_refused);
        if last.has_refused {
            self.retry = Some(Instant::now() + self.backoff.next_delay());
        } else {
            self.retry = None;
            self.backoff.reset();
        }
    }

    /// Applies the files of a directory that need it. False if the directory could not be listed.
    async fn round(&mut self, index: usize, says_all: bool, round: &mut Round) -> bool {
        let path = self.directories[index].path.clone();
        let listed = spawn_blocking(move || files::of_directory(&path)).await;
        let found = match listed.map_err(io::Error::other).flatten() {
            Ok(found) => found,
            Err(error) => {
                let directory = &mut self.directories[index];
                let complaint = format!("cannot read {}: {error}", directory.path.display());
                if directory.is_unlisted(complaint.clone()) {
                    complain(&self.client, Failed::Parse, &complaint).await;
                }
                return false;
            }
        };
        self.directories[index].is_listed();
        self.directories[index].retain(found.keys());
        self.apply_files(index, found, says_all, round).await;
        true
    }

    async fn apply_files(
        &mut self,
        index: usize,
        found: BTreeMap<String, io::Result<Vec<u8>>>,
        says_all: bool,
        round: &mut Round,
    ) {
        for (name, read) in found {
            let (digest, objects) = match read {
                Ok(bytes) => {
                    let digest = digest(&bytes);
                    if !self.directories[index].needs(&name, digest) {
                        continue;
                    }
                    (digest, files::objects(&bytes))
                }
                Err(error) => (0, Err(error.into())),
            };
            let label = self.directories[index].label(&name);
            match objects {
                Ok(objects) => {
                    self.apply_file(index, &name, digest, objects, says_all, round)
                        .await;
                }
                Err(error) => {
                    let complaint = format!("{label}: {error:#}; what it held stays as it is");
                    let directory = &mut self.directories[index];
                    if directory.is_wrong(&name, digest, complaint.clone(), &self.record) {
                        complain(&self.client, Failed::Parse, &complaint).await;
                    }
                }
            }
        }
    }

    /// Applies the objects of one file, those behind a refused one as well.
    async fn apply_file(
        &mut self,
        index: usize,
        name: &str,
        digest: u64,
        objects: Vec<serde_json::Value>,
        says_all: bool,
        round: &mut Round,
    ) {
        let directory = &self.directories[index];
        let (label, place) = (directory.label(name), directory.place(name));
        let says_all = says_all || directory.has_complaint(name);
        let (mut ids, mut complaints) = (Vec::new(), Vec::new());
        let mut state = State::Applied;
        for object in objects {
            let target = Target::of(&Reference::of(&object));
            ids.extend(target.map(|target| target.id).ok());
            match apply(&self.client, object).await {
                Ok(applied) => {
                    self.record.note(&applied, &place);
                    let is_changed = applied.outcome != Outcome::Unchanged;
                    round.has_changed |= is_changed;
                    if is_changed || says_all {
                        say(applied.line());
                    }
                }
                Err(error) => {
                    let refusal = if is_final(&error) {
                        State::Wrong
                    } else {
                        State::Refused
                    };
                    if state != State::Refused {
                        state = refusal;
                    }
                    complaints.push(format!("{error:#}"));
                }
            }
        }
        round.has_refused |= state == State::Refused;
        let refused =
            (!complaints.is_empty()).then(|| (state, format!("{label}: {}", complaints.join("; "))));
        let complaint = refused.as_ref().map(|(_, complaint)| complaint.clone());
        let is_news = self.directories[index].was_tried(name, digest, ids, refused);
        if let Some(complaint) = complaint.filter(|_| is_news) {
            complain(&self.client, Failed::Apply, &complaint).await;
        }
    }

    /// Deletes, or names, what was applied from a directory and is in no file any more. False if that has to be tried again.
    async fn let_go(&mut self, index: usize) -> bool {
        let mut holders: HashMap<&ObjectId, Vec<Place>> = HashMap::new();
        for directory in &self.directories {
            for (file, id) in directory.objects() {
                holders.entry(id).or_default().push(directory.place(file));
            }
        }
        self.record.settle(&holders);
        let wanted: HashSet<&ObjectId> = holders.into_keys().chain(&self.applied_once).collect();
        let directory = &self.directories[index];
        let gone = self.record.gone(directory.absolute(), &wanted);
        let path = directory.path.display().to_string();
        let mut is_done = true;
        for entry in gone {
            is_done &= if self.prune {
                self.delete(&entry).await
            } else {
                self.leave(&entry, &path).await
            };
        }
        is_done
    }

    async fn leave(&mut self, entry: &Entry, path: &str) -> bool {
        if entry.is_left {
            return true;
        }
        let id = &entry.target.id;
        match self.client.get(&entry.target.object()).await {
            Ok(held) if held.uid() == entry.uid => {
                say(format_args!(
                    "{} stays: it is in no file of {path} any more; delete it with kubectl, or start with --prune",
                    entry.target.printed
                ));
                self.record.leave(id);
            }
            // Somebody has deleted it, and what is there is not ours.
            Ok(_) => self.record.forget(id),
            Err(error) if error.is_not_found() => self.record.forget(id),
            Err(_) => return false,
        }
        true
    }

    async fn delete(&mut self, entry: &Entry) -> bool {
        let id = &entry.target.id;
        let params = DeleteParams {
            uid: entry.uid.clone(),
            ..DeleteParams::default()
        };
        match self.client.delete(&entry.target.object(), &params).await {
            Ok(_) => {
                say(format_args!("{} deleted", entry.target.printed));
                self.record.forget(id);
                true
            }
            // Somebody has deleted it, and what is there by now is not ours.
            Err(error) if error.is_not_found() || error.is_conflict() => {
                self.record.forget(id);
                true
            }
            Err(error) => {
                let complaint = format!("cannot delete {}: {error}", entry.target.printed);
                if self.record.complain(id, &complaint) {
                    complain(&self.client, Failed::Delete, &complaint).await;
                }
                false
            }
        }
    }

    /// False if the disk does not take it.
    async fn write_record(&mut self) -> bool {
        let unwritten = self.record.unwritten().map_err(io::Error::other);
        let written = match unwritten {
            Ok(None) => return true,
            Ok(Some((path, text))) => spawn_blocking(move || write_state_file(&path, &text)).await,
            Err(error) => Ok(Err(error)),
        };
        match written.map_err(io::Error::other).flatten() {
            Ok(()) => {
                self.record.is_on_disk();
                self.unwritten = None;
                true
            }
            Err(error) => {
                let complaint = format!("cannot write which manifests were applied: {error}; trying again");
                if self.unwritten.as_ref() != Some(&complaint) {
                    output::complain(&complaint);
                }
                self.unwritten = Some(complaint);
                false
            }
        }
    }
}

fn watch(index: usize, path: &Path, sender: mpsc::Sender<usize>) -> anyhow::Result<Watching> {
    let cannot = || format!("cannot follow {}", path.display());
    let mut watcher = Watcher::new(path, WatchConfig::default()).with_context(cannot)?;
    let mut was_deaf = false;
    let label = path.display().to_string();
    watcher.on_health(move |health| {
        if health.is_deaf() || was_deaf {
            output::complain(format_args!("{label}: {health}"));
        }
        was_deaf = health.is_deaf();
    });
    let watching = Watching(watcher.stopper());
    let run = move || {
        while watcher.next().is_ok() {
            if sender.blocking_send(index).is_err() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("manifests".to_owned());
    thread.spawn(run).with_context(cannot)?;
    Ok(watching)
}
