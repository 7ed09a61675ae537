/** The mount flags that the kernel shows in its table of mounts, and that kcore compares. */
export const shownFlags = [
  "rw",
  "ro",
  "relatime",
  "noatime",
  "nodiratime",
  "nosuid",
  "nodev",
  "noexec",
  "sync",
  "dirsync",
];

/** The flags that the kernel will show for these options, with mount(8)'s defaults for the others. */
export function flagsOf(options: readonly string[]): string {
  const flags = new Set(["rw", "relatime"]);
  const atime = (name?: string): void => {
    for (const other of ["relatime", "noatime"]) flags.delete(other);
    if (name !== undefined) flags.add(name);
  };
  for (const option of options) {
    if (option === "ro" || option === "rw") {
      flags.delete("ro");
      flags.delete("rw");
      flags.add(option);
    } else if (option === "noatime" || option === "relatime") atime(option);
    else if (option === "strictatime") atime();
    else if (["nosuid", "nodev", "noexec", "nodiratime", "sync", "dirsync"].includes(option)) flags.add(option);
    else if (["suid", "dev", "exec", "diratime"].includes(option)) flags.delete(`no${option}`);
    else if (option === "user" || option === "users") for (const name of ["nosuid", "nodev", "noexec"]) flags.add(name);
    else if (option === "owner" || option === "group") for (const name of ["nosuid", "nodev"]) flags.add(name);
  }
  return [...flags].toSorted().join(" ");
}

/** The given flags of a bind mount, which inherits all others from its source. */
export function bindFlags(options: readonly string[]): string {
  return options
    .filter((option) => shownFlags.includes(option))
    .toSorted()
    .join(" ");
}

/** An option for each flag but dirsync, set or not: a remount keeps the flags that it does not name. */
export function allFlags(flags: string): string[] {
  const set = new Set(flags.split(" "));
  const atime = set.has("noatime") ? "noatime" : set.has("relatime") ? "relatime" : "strictatime";
  const either = ["suid", "dev", "exec", "diratime"].map((name) => (set.has(`no${name}`) ? `no${name}` : name));
  return [set.has("ro") ? "ro" : "rw", atime, ...either, set.has("sync") ? "sync" : "async"];
}
