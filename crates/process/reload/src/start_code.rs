//! Code that only the start needs does not stay in memory.
//!
//! A sidecar reads its flags once and then waits for hours. The kernel maps 64 KiB around each page that is touched, so that after
//! the start most of the program counts as resident although a change needs a small part of it.

use std::ffi::c_void;
use std::fs;
use std::ops::Range;

/// Unmaps the pages of the program's code, and of what is read only before it. What is needed again comes back from the page
/// cache, without the disk, in less than a microsecond a page. Fails silently: then it is as without it.
pub(crate) fn give_back() {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else {
        return;
    };
    for mapping in mappings_around(&maps, give_back as fn() as usize) {
        // SAFETY: this is one mapping of a file that is never written to (`mappings_around`). Its pages are what the file
        // holds, and the kernel reads them again from there when they are touched next.
        let _ = unsafe { libc::madvise(mapping.start as *mut c_void, mapping.len(), libc::MADV_DONTNEED) };
    }
}

/// The mapping with this address, if it is one of a file, readable and executable, and not writable; and the one right before
/// it, if it is the file's beginning and only readable: the program's header, its constants and what was needed to
/// relocate it. What is only readable elsewhere may have been written before, such as relocated pointers. The format is
/// that of `proc_pid_maps(5)`.
fn mappings_around(maps: &str, address: usize) -> Vec<Range<usize>> {
    let mappings: Vec<Mapping<'_>> = maps.lines().filter_map(Mapping::parse).collect();
    let is_code = |mapping: &Mapping<'_>| mapping.range.contains(&address) && mapping.permissions == "r-xp";
    let Some(at) = mappings.iter().position(is_code) else {
        return Vec::new();
    };
    let code = &mappings[at];
    let beginning = mappings[..at].last().filter(|mapping| {
        mapping.range.end == code.range.start
            && mapping.path == code.path
            && mapping.permissions == "r--p"
            && mapping.is_at_beginning
    });
    beginning
        .into_iter()
        .chain([code])
        .map(|mapping| mapping.range.clone())
        .collect()
}

/// A mapping of a file.
struct Mapping<'a> {
    range: Range<usize>,
    permissions: &'a str,
    is_at_beginning: bool,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let offset = words.next()?;
        Some(Self {
            range: usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?,
            permissions,
            is_at_beginning: offset.bytes().all(|digit| digit == b'0'),
            path: words.nth(2).filter(|path| path.starts_with('/'))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_mapped_as_code_is_code_and_its_beginning_goes_along() {
        let maps = "1000-2000 r--p 00000000 fe:00 12 /bin/a\n\
                    2000-5000 r-xp 00001000 fe:00 12 /bin/a\n\
                    5000-6000 r--p 00004000 fe:00 12 /bin/a\n\
                    6000-7000 rwxp 00004000 fe:00 12 /bin/a\n\
                    7000-8000 r-xp 00000000 00:00 0 \n\
                    8000-9000 r-xp 00000000 00:00 0 [vdso]\n\
                    a000-b000 r--p 00001000 fe:00 13 /lib/b\n\
                    b000-c000 r-xp 00002000 fe:00 13 /lib/b\n\
                    c000-d000 r-xp 00000000 fe:00 14 /lib/c\n";
        for (address, found) in [
            (0x1000, vec![]),
            (0x2000, vec![(0x1000, 0x2000), (0x2000, 0x5000)]),
            (0x4fff, vec![(0x1000, 0x2000), (0x2000, 0x5000)]),
            (0x5000, vec![]),
            (0x6000, vec![]),
            (0x7000, vec![]),
            (0x8000, vec![]),
            (0xb000, vec![(0xb000, 0xc000)]),
            (0xc000, vec![(0xc000, 0xd000)]),
            (0xd000, vec![]),
        ] {
            let ranges = mappings_around(maps, address).into_iter();
            let ranges: Vec<(usize, usize)> = ranges.map(|range| (range.start, range.end)).collect();
            assert_eq!(ranges, found, "{address:x}");
        }
    }

    #[test]
    fn a_program_runs_on_without_its_code_in_memory() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!mappings_around(&maps, give_back as fn() as usize).is_empty());
        give_back();
        let sum: u8 = "1 2 3"
            .split(' ')
            .filter_map(|word| word.parse::<u8>().ok())
            .sum();
        assert_eq!(sum, 6);
    }
}
