import type { Sample } from "#support/sample.ts";

const noSystemd = { refuses: "TOOL_MISSING", forWantOf: "systemctl" } as const;
const noBlkid = { refuses: "TOOL_MISSING", forWantOf: "blkid" } as const;
const disk = { serial: "n1-disk0" };
const unit =
  "[Unit]\nDescription=A sample\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";

/** Files, accounts, services, packages and disks: what the first states of a machine are made of. */
export const samples: readonly Sample[] = [
  {
    id: "directory.managed",
    module: "directory.managed",
    args: { path: "/srv/site", mode: "0750", owner: "root" },
    busybox: "converges",
    drift: { by: "chmod 755 /srv/site", finds: { mode: "0755" } },
    refusal: {
      args: { path: "/srv/taken" },
      code: "FILE_IN_THE_WAY",
      before: "echo >/srv/taken",
      after: "rm /srv/taken",
    },
  },
  {
    id: "file.managed",
    module: "file.managed",
    args: { path: "/srv/site/index.html", content: "<h1>kcore</h1>\n", mode: "0640", owner: "root", group: "root" },
    busybox: "converges",
    drift: { by: "echo more >>/srv/site/index.html", finds: { content: /^sha256:/ } },
    refusal: { args: { path: "/srv/no/such/file", content: "x" }, code: "FILE_NO_PARENT" },
  },
  {
    id: "file.managed validated",
    module: "file.managed",
    args: { path: "/srv/site/data", content: "a=1\n", validate: "grep -q = %s" },
    busybox: "converges",
    drift: { by: "rm /srv/site/data", finds: { kind: "absent" } },
    refusal: { args: { path: "/srv/site/bad", content: "x", validate: "grep -q = %s" }, code: "FILE_INVALID" },
  },
  {
    id: "symlink.managed",
    module: "symlink.managed",
    args: { path: "/srv/current", target: "site" },
    busybox: "converges",
    drift: { by: "ln -sfn elsewhere /srv/current", finds: { target: "elsewhere" } },
    refusal: { args: { path: "/srv/site/index.html", target: "x" }, code: "FILE_IN_THE_WAY" },
  },
  {
    id: "file.absent",
    module: "file.absent",
    args: { path: "/srv/old", recurse: true },
    busybox: "converges",
    before: "mkdir -p /srv/old/below",
    drift: { by: "echo >/srv/old", finds: { kind: "file" } },
    refusal: { args: { path: "/srv/site" }, code: "FILE_NOT_EMPTY" },
  },
  {
    id: "group.managed",
    module: "group.managed",
    args: { name: "staffers", gid: 4711 },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "groupadd" },
    drift: { by: "groupmod -g 4712 staffers", finds: { gid: "4712" } },
  },
  {
    id: "user.managed",
    module: "user.managed",
    args: { name: "sample", group: "staffers", shell: "/bin/sh", home: "/srv/sample", createHome: true },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "useradd" },
    drift: { by: "usermod -s /usr/sbin/nologin sample", finds: { shell: "/usr/sbin/nologin" } },
  },
  {
    id: "package.installed",
    module: "package.installed",
    args: { names: ["tree", "hello"], updateCache: true },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "apt-get" },
    drift: { by: "apt-get -q -y purge tree", finds: { tree: "absent" } },
    refusal: {
      args: { name: "hello", state: "absent" },
      code: "PACKAGE_INTERRUPTED",
      before: "touch /var/lib/dpkg/updates/0001",
      after: "rm /var/lib/dpkg/updates/0001",
    },
  },
  {
    id: "unit.managed",
    module: "unit.managed",
    args: { name: "sample", content: unit },
    busybox: noSystemd,
    drift: { by: "echo >>/etc/systemd/system/sample.service", finds: { content: /^sha256:/ } },
    refusal: {
      args: { name: "sample", content: unit.replace("ExecStart", "ExecStrat") },
      code: "UNIT_INVALID",
    },
  },
  {
    id: "service.running",
    module: "service.running",
    args: { name: "sample" },
    busybox: noSystemd,
    drift: { by: "systemctl stop sample", finds: { active: "inactive" } },
    refusal: {
      args: { name: "dies" },
      code: "UNIT_STATIC",
      before:
        "printf '[Service]\\nType=oneshot\\nExecStart=/bin/false\\n' >/run/systemd/system/dies.service; systemctl daemon-reload",
      after: "rm /run/systemd/system/dies.service; systemctl daemon-reload",
    },
  },
  {
    id: "service.stopped",
    module: "service.stopped",
    args: { name: "systemd-pstore" },
    busybox: noSystemd,
    drift: { by: "systemctl enable systemd-pstore", finds: { enabled: "enabled" } },
  },
  {
    id: "command.run creates",
    module: "command.run",
    args: { cmd: "echo made >/srv/made" },
    keys: { creates: "/srv/made" },
    busybox: "converges",
    drift: { by: "rm /srv/made", finds: {} },
  },
  {
    id: "script.run creates",
    module: "script.run",
    args: { text: 'echo "$1" >/srv/scripted', args: ["it's"] },
    keys: { creates: "/srv/scripted" },
    busybox: "converges",
    drift: { by: "rm /srv/scripted", finds: {} },
  },
  {
    id: "key.generated",
    module: "key.generated",
    args: { path: "/srv/site/host.key" },
    busybox: { refuses: "TOOL_MISSING", forWantOf: "openssl" },
    drift: { by: "chmod 644 /srv/site/host.key", finds: { mode: "0644" } },
  },
  {
    id: "wait.for",
    module: "wait.for",
    args: { path: "/srv/made" },
    isCheck: true,
    busybox: "converges",
  },
  {
    id: "port.open",
    module: "port.open",
    args: { port: 22 },
    isCheck: true,
    busybox: "converges",
  },
  {
    id: "fact.assert",
    module: "fact.assert",
    args: {
      that: [
        { cpus: 1 },
        { memory: "64M" },
        { root: true },
        { kernelMin: "4.0" },
        { freeSpace: { path: "/srv", min: "1M" } },
      ],
    },
    isCheck: true,
    busybox: "converges",
  },
  {
    id: "disk.partitioned",
    module: "disk.partitioned",
    args: {
      disk,
      partitions: [
        { name: "data", size: "40M" },
        { name: "pv", size: "40M" },
      ],
    },
    busybox: noBlkid,
    drift: { by: "sgdisk -d 2 /dev/disk/by-id/lab-n1-disk0 && udevadm settle", finds: {} },
  },
  {
    id: "filesystem.formatted mount",
    module: "filesystem.formatted",
    args: { disk, partition: "data", label: "sample" },
    helps: true,
  },
  {
    id: "mount.mounted",
    module: "mount.mounted",
    args: { path: "/srv/disk", source: { disk, partition: "data" }, fstype: "ext4" },
    busybox: { refuses: "MOUNT_SOURCE_MISSING", forWantOf: "UUID=" },
    drift: { by: "umount /srv/disk", finds: { mounted: /./ } },
  },
];
