//! Whatever writers do, in whatever order: what is there in the end is told, and nothing is told that is no change.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Act {
    Swap(u8),
    SwapTheSame,
    Replace(u8, u8),
    Truncate(u8, u8),
    Remove(u8),
    Deep(u8, u8),
    Elsewhere(u8),
    RemoveAll,
    Unproject,
    Listen,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_u8..4).prop_map(Act::Swap),
        2 => Just(Act::SwapTheSame),
        2 => (0_u8..3, 0_u8..4).prop_map(|(name, content)| Act::Replace(name, content)),
        2 => (0_u8..3, 0_u8..4).prop_map(|(name, content)| Act::Truncate(name, content)),
        1 => (0_u8..3).prop_map(Act::Remove),
        1 => (0_u8..3, 0_u8..4).prop_map(|(name, content)| Act::Deep(name, content)),
        1 => (0_u8..3).prop_map(Act::Elsewhere),
        1 => Just(Act::RemoveAll),
        1 => Just(Act::Unproject),
        3 => Just(Act::Listen),
    ]
}

struct Writers {
    path: PathBuf,
    kubelet: Kubelet,
    last: u8,
    moved: u32,
}

impl Writers {
    /// Errors are those of acts that make no sense after those before: they are no acts then.
    fn act(&mut self, act: &Act) {
        let file = |name: &u8| self.path.join(format!("file{name}"));
        match act {
            Act::Swap(content) => {
                self.last = *content;
                self.kubelet.write(&[("a", &content.to_string()), ("b", "same")]);
            }
            Act::SwapTheSame => {
                self.kubelet
                    .write(&[("a", &self.last.to_string()), ("b", "same")]);
            }
            Act::Replace(name, content) => {
                let new = self.path.join("..new");
                let _ = fs::write(&new, content.to_string());
                let _ = fs::rename(new, file(name));
            }
            Act::Truncate(name, content) => drop(fs::write(file(name), content.to_string())),
            Act::Remove(name) => drop(fs::remove_file(file(name))),
            Act::Deep(name, content) => {
                let directory = self.path.join("deep/er");
                let _ = fs::create_dir_all(&directory);
                let _ = fs::write(directory.join(name.to_string()), content.to_string());
            }
            Act::Elsewhere(name) => {
                self.moved += 1;
                let _ = fs::rename(
                    file(name),
                    self.path.with_extension(format!("moved{}", self.moved)),
                );
            }
            Act::RemoveAll => drop(fs::remove_dir_all(&self.path)),
            Act::Unproject => drop(fs::remove_file(self.path.join("..data"))),
            Act::Listen => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_is_there_in_the_end_is_told(acts in prop::collection::vec(act(), 0..24)) {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("config");
        let config = WatchConfig { settle: Duration::from_millis(1), ..config(NEVER) };
        let mut watcher = Watcher::new(&path, config).unwrap();
        let kubelet = Kubelet::new(&path);
        let mut writers = Writers { path: path.clone(), kubelet, last: 0, moved: 0 };
        writers.act(&Act::Swap(0));
        next_change(&mut watcher);
        for (count, act) in acts.iter().enumerate() {
            writers.act(act);
            if matches!(act, Act::Listen) {
                // A state that was never there before ends each bout.
                writers.kubelet.write(&[("marker", &count.to_string())]);
                catch_up(&mut watcher, &path);
            }
        }
        writers.kubelet.write(&[("marker", "the end")]);
        catch_up(&mut watcher, &path);
        prop_assert_eq!(watcher.handle().counts().found_by_looking, 0);
    }
}
