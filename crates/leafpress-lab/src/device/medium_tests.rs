use super::*;

/// A tree of files and links.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn look(&self, device: &str) -> Medium {
        let mut medium = Medium::default();
        medium.look_at(&fs::canonicalize(self.0.path().join(device)).unwrap(), MAX_LEVELS);
        medium
    }
}

#[test]
fn a_partition_is_looked_through_to_its_disk() {
    let tree = Tree::new();
    tree.write("pci/nvme0n1/queue/rotational", "0\n")
        .write("pci/nvme0n1/queue/write_cache", "write through\n")
        .write("pci/nvme0n1/device/model", "Samsung SSD 990\n")
        .write("pci/nvme0n1/nvme0n1p2/partition", "2\n");
    let medium = tree.look("pci/nvme0n1/nvme0n1p2");
    let expected = Medium {
        device: Some("nvme0n1".into()),
        model: Some("Samsung SSD 990".into()),
        rotational: Some(false),
        write_back: Some(false),
        ..Medium::default()
    };
    assert_eq!(medium, expected);
}

#[test]
fn device_mapper_is_looked_through_to_its_disks() {
    let tree = Tree::new();
    tree.write("pci/sda/queue/rotational", "1")
        .write("pci/sdb/queue/rotational", "1");
    tree.write("virtual/dm-0/slaves/x", "");
    let slaves = tree.0.path().join("virtual/dm-0/slaves");
    fs::remove_file(slaves.join("x")).unwrap();
    for disk in ["sda", "sdb"] {
        std::os::unix::fs::symlink(tree.0.path().join("pci").join(disk), slaves.join(disk)).unwrap();
    }
    let device = tree.look("virtual/dm-0").device.unwrap();
    assert!(["sda+sdb", "sdb+sda"].contains(&device.as_str()), "{device}");
    // A loop of slaves ends.
    tree.write("virtual/dm-1/slaves/x", "");
    let slaves = tree.0.path().join("virtual/dm-1/slaves");
    fs::remove_file(slaves.join("x")).unwrap();
    std::os::unix::fs::symlink(tree.0.path().join("virtual/dm-1"), slaves.join("dm-1")).unwrap();
    assert_eq!(tree.look("virtual/dm-1").device.as_deref(), Some("dm-1"));
}

#[test]
fn virtual_disks_are_known() {
    let tree = Tree::new();
    tree.write("devices/virtio1/block/vda/size", "1")
        .write("devices/vbd-768/block/xvda/size", "1")
        .write("devices/ata1/block/sda/device/model", "QEMU HARDDISK\n")
        .write("devices/ata1/block/sdb/device/model", "SDSSDA-120G-G26\n");
    let by = |device: &str| tree.look(device).virtual_by;
    assert_eq!(by("devices/virtio1/block/vda").as_deref(), Some("virtio"));
    assert_eq!(by("devices/vbd-768/block/xvda").as_deref(), Some("Xen"));
    assert_eq!(by("devices/ata1/block/sda").as_deref(), Some("QEMU HARDDISK"));
    assert_eq!(by("devices/ata1/block/sdb"), None);
}

#[test]
fn the_last_mount_at_the_longest_place_counts() {
    let tree = Tree::new();
    let place = tree.0.path().join("mnt/my disk");
    fs::create_dir_all(&place).unwrap();
    let root = fs::canonicalize(tree.0.path()).unwrap();
    let escaped = root.join("mnt/my disk").display().to_string().replace(' ', "\\040");
    let table = format!(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / {escaped} rw shared:1 - nfs server:/x rw\n\
         3 1 0:6 / {escaped} rw - tmpfs tmpfs rw\njunk\n4 1 0:7 / /mn rw - xfs /dev/x rw\n"
    );
    tree.write("proc/self/mountinfo", &table);
    let of = |path: &Path| Mount::of(&root, path).unwrap().file_system;
    assert_eq!(of(&place), "tmpfs");
    assert_eq!(of(&root.join("mnt")), "ext4");
    let medium = Medium::under(&root, &place);
    assert!(medium.is_memory() && !medium.is_remote() && medium.file_system.as_deref() == Some("tmpfs"));
}

#[test]
fn what_is_elsewhere_and_what_is_memory_is_known() {
    let of = |file_system: &str, device: Option<&str>| Medium {
        file_system: Some(file_system.into()),
        device: device.map(str::to_owned),
        ..Medium::default()
    };
    assert!(of("nfs4", None).is_remote() && of("fuse.sshfs", None).is_remote() && of("9p", None).is_remote());
    assert!(of("ext4", Some("zram0")).is_memory() && !of("ext4", Some("sda")).is_memory());
    assert!(!of("overlay", None).is_memory() && !of("overlay", None).is_remote());
}

#[test]
fn nothing_is_known_of_what_is_not_there() {
    let medium = Medium::of(Path::new("/no/such/file"));
    assert_eq!((medium.device, medium.file_system), (None, None));
}
