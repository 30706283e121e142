use std::os::unix::fs::symlink;

use super::*;

fn variables() -> Variables {
    Arc::new(BTreeMap::from([("NAME".to_owned(), "web-0".to_owned())]))
}

fn render(directory: &Path) -> Result<(), RenderError> {
    let paths = RenderPaths {
        template: directory.join("in"),
        out: directory.join("out"),
    };
    Render::render(&paths, Syntax::Both, Undefined::Error, &variables())
}

#[test]
fn a_template_becomes_a_file_packed_or_not() {
    let directory = tempfile::tempdir().unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"packed: $(NAME)\n").unwrap();
    for (template, content) in [
        (b"name: $(NAME)\n".to_vec(), "name: web-0\n"),
        (packed.finish().unwrap(), "packed: web-0\n"),
        (vec![], ""),
    ] {
        fs::write(directory.path().join("in"), template).unwrap();
        render(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("out")).unwrap(), content);
    }
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        2,
        "nothing else is left"
    );
}

#[test]
fn the_mode_of_the_file_stays_and_a_new_one_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let mode = || fs::metadata(&out).unwrap().mode() & 0o7777;
    fs::write(directory.path().join("in"), "1").unwrap();
    render(directory.path()).unwrap();
    assert_eq!(mode(), 0o644);
    fs::set_permissions(&out, Permissions::from_mode(0o640)).unwrap();
    fs::write(directory.path().join("in"), "2").unwrap();
    render(directory.path()).unwrap();
    assert_eq!(mode(), 0o640);
}

#[test]
fn equal_content_is_not_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let inode = || fs::metadata(directory.path().join("out")).unwrap().ino();
    fs::write(directory.path().join("in"), "same").unwrap();
    render(directory.path()).unwrap();
    let before = inode();
    // A second file keeps the inode number from being used again.
    fs::hard_link(directory.path().join("out"), directory.path().join("kept")).unwrap();
    render(directory.path()).unwrap();
    assert_eq!(inode(), before);
}

#[test]
fn a_link_in_the_way_of_the_staged_file_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, directory.path().join(".out.hotmap")).unwrap();
    fs::write(directory.path().join("in"), "new").unwrap();
    render(directory.path()).unwrap();
    assert_eq!(fs::read_to_string(victim).unwrap(), "untouched");
}

#[test]
fn each_failure_names_the_file_and_leaves_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    fs::write(&out, "old").unwrap();
    let error = TargetError::from(render(directory.path()).unwrap_err());
    assert!(
        error.message.contains("cannot read the template") && error.is_temporary,
        "{error}"
    );
    fs::write(directory.path().join("in"), "a\n$(PASSWORD)").unwrap();
    let error = TargetError::from(render(directory.path()).unwrap_err());
    assert!(
        error.message.contains("refers to PASSWORD in line 2") && !error.is_temporary,
        "{error}"
    );
    assert_eq!(fs::read_to_string(&out).unwrap(), "old");
    fs::remove_file(&out).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(directory.path().join("in"), "new").unwrap();
    let error = TargetError::from(render(directory.path()).unwrap_err());
    assert!(
        error.message.contains("cannot write") && error.reason == "write",
        "{error}"
    );
    assert!(!directory.path().join(".out.hotmap").exists());
}

#[test]
fn two_paths_are_typed_with_a_colon_between() {
    for (raw, is_good) in [
        ("/a:/b", true),
        ("/a", false),
        (":/b", false),
        ("/a:", false),
        ("/a:/b/", false),
        ("/a:/a", false),
    ] {
        assert_eq!(raw.parse::<RenderPaths>().is_ok(), is_good, "{raw}");
    }
}
