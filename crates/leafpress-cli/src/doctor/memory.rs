//! Huge pages.

use leafpress_lab::core::Bytes;

use super::finding::Finding;
use super::root::Root;

const AREA: &str = "memory";

pub fn examine(root: &Root) -> Vec<Finding> {
    vec![reserved(root), transparent(root)]
}

fn reserved(root: &Root) -> Finding {
    const FIX: &str = "optional: sudo sysctl vm.nr_hugepages=128 reserves 128 of them";
    let Some(text) = root.text("proc/meminfo") else {
        return Finding::missing(
            AREA,
            "reserved huge pages",
            "/proc/meminfo cannot be read",
            "mount /proc",
        );
    };
    let field = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
    };
    match (field("HugePages_Total"), field("HugePages_Free"), field("Hugepagesize")) {
        (Some(total), Some(free), Some(size)) if total > 0 => Finding::ok(
            AREA,
            "reserved huge pages",
            format!("{free} of {total} free, {} each", Bytes(size << 10)),
        ),
        (Some(_), _, Some(size)) => Finding::missing(
            AREA,
            "reserved huge pages",
            format!("none reserved ({} each)", Bytes(size << 10)),
            FIX,
        ),
        _ => Finding::missing(
            AREA,
            "reserved huge pages",
            "the kernel has none (CONFIG_HUGETLBFS)",
            "optional: use transparent huge pages",
        ),
    }
}

fn transparent(root: &Root) -> Finding {
    let Some(line) = root.attribute("sys/kernel/mm/transparent_hugepage/enabled") else {
        return Finding::missing(
            AREA,
            "transparent huge pages",
            "the kernel has none",
            "optional: a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
        );
    };
    // The chosen word stands in brackets: `always [madvise] never`.
    let chosen = line
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(word, _)| word);
    match chosen {
        Some("always") => Finding::ok(AREA, "transparent huge pages", "always"),
        Some("madvise") => Finding::ok(
            AREA,
            "transparent huge pages",
            "madvise: programs that ask for them get them",
        ),
        _ => Finding::not_usable(
            AREA,
            "transparent huge pages",
            line,
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    }
}
