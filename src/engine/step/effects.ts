/**
 * A resource of a node that a step may write, or that its probe reads. A dry run cannot know the state that a later step
 * would find after an earlier step's change (docs/runner.md, Dry runs).
 */
export type NodeResource =
  /**
   * The file, link or folder at a path; of a folder its mode and owner, not its entries. To read: `owner` is the owner
   * that the step wants.
   */
  | { readonly is: "path"; readonly path: string; readonly owner?: string | undefined }
  /** A path with all entries beneath it. */
  | { readonly is: "tree"; readonly path: string }
  /** To write: a folder's mode and owner, and whether others than the owner may then make names in it. */
  | { readonly is: "folder"; readonly path: string; readonly owner: string; readonly isOpen: boolean }
  /** To write: missing folders above a path. */
  | { readonly is: "parents"; readonly path: string }
  /** To read: a folder or file that must exist for apply; the step's probe does not depend on it. */
  | { readonly is: "existing"; readonly path: string }
  /** A user or group. To write: `renumbers` if its number may change, `goes` if it is removed. */
  | { readonly is: "user" | "group"; readonly name: string; readonly renumbers?: boolean; readonly goes?: boolean }
  /** To read: a user or group that is to own a file. */
  | { readonly is: "owner" | "ownerGroup"; readonly name: string }
  /** To write: packages and their files; with `known` the effects list these files. To read: the presence of packages. */
  | { readonly is: "packages"; readonly known?: true }
  /** To read: the absence of packages. */
  | { readonly is: "noPackages" }
  /** To read: the absence of a file, link or folder at a path. */
  | { readonly is: "noFile"; readonly path: string }
  /** To read: the absence of a service. */
  | { readonly is: "noService"; readonly name: string }
  /** `service`: a unit's state. `unit`, to write: only a unit's text. */
  | { readonly is: "service" | "unit"; readonly name: string }
  /** A disk by one of its names; `*` if the disk is not known. */
  | { readonly is: "disk"; readonly name: string }
  /** To write: a reboot. */
  | { readonly is: "boot" }
  /** To read: a program that must exist. */
  | { readonly is: "program"; readonly name: string }
  /** To read: the present state of ports, services' answers and free resources. */
  | { readonly is: "system" }
  /** The effects of an operator's command, as far as its text names them. */
  | { readonly is: "command"; readonly text: string };

/** The resources that a step may write, and the resources that its probe and its apply depend on. */
export interface Effects {
  readonly writes: readonly NodeResource[];
  readonly reads: readonly NodeResource[];
}

/** The owner and group that a step gives a file or folder; an absent one is not managed. */
export interface Owned {
  readonly owner?: string | undefined;
  readonly group?: string | undefined;
}

export function pathsOf(paths: readonly string[]): readonly NodeResource[] {
  return paths.map((path) => ({ is: "path", path }));
}

/** The users and groups that must exist for these owners; root always does, and a number needs no account. */
export function ownersOf({ owner, group }: Owned): NodeResource[] {
  const isName = (name: string | undefined): name is string => name !== undefined && !/^\d+$/.test(name);
  return [
    ...(isName(owner) && owner !== "root" ? [{ is: "owner", name: owner } as const] : []),
    ...(isName(group) && group !== "root" ? [{ is: "ownerGroup", name: group } as const] : []),
  ];
}

/** The write of a folder's mode and owner; without a mode 0755 is assumed. */
export function folderOf({
  path,
  mode,
  owner,
}: { readonly path: string; readonly mode?: string | undefined } & Owned): NodeResource {
  const bits = mode === undefined ? 0o755 : Number.parseInt(mode, 8);
  return { is: "folder", path, owner: owner ?? "root", isOpen: (bits & 0o022) !== 0 };
}

/**
 * Whether the verdicts of a dry run's probe still hold after an earlier step's change: a digit for “in order”, and a
 * digit for “would change”. 2: the verdict holds. 1: it holds if the change does not affect it. 0: it is unknown.
 */
export type Survival = `${0 | 1 | 2}${0 | 1 | 2}`;

const none = "00";
const inOrder = "20";
const wouldChange = "02";
const both = "22";
const unlessAffected = "11";

/** The survival of a verdict after both changes. */
export function afterBoth(one: Survival, other: Survival): Survival {
  return [0, 1].map((at) => [one.charAt(at), other.charAt(at)].sort()[0]).join("") as Survival;
}

/** The survival of verdicts that depend on `read` after the write `change`; undefined if the two are independent. */
export function survives(change: NodeResource, read: NodeResource): Survival | undefined {
  switch (change.is) {
    case "path":
    case "tree":
    case "folder":
      return afterPath(change, read);
    case "parents":
      return (read.is === "path" || read.is === "tree") && isBeneath(change.path, read.path) ? inOrder : undefined;
    case "user":
    case "group":
      return afterAccount(change, read);
    case "packages":
      return change.known && !["packages", "noPackages", "program"].includes(read.is) ? undefined : afterPackages(read);
    case "service":
    case "unit":
      return afterService(change, read);
    case "disk":
      if (read.is === "command") return mentionsDevice(read.text) ? none : undefined;
      if (read.is !== "disk") return undefined;
      return change.name === read.name || change.name === "*" || read.name === "*" ? none : undefined;
    case "boot":
      if (read.is === "service" || read.is === "noService") return inOrder;
      if (read.is === "path" || read.is === "tree") return isUnder(read.path, ["/run", "/tmp"]) ? none : undefined;
      return read.is === "system" || read.is === "command" ? none : undefined;
    case "command":
      return afterCommand(change.text, read);
    default:
      return undefined;
  }
}

function afterPath(
  change: Extract<NodeResource, { is: "path" | "tree" | "folder" }>,
  read: NodeResource,
): Survival | undefined {
  const { path } = change;
  switch (read.is) {
    case "path":
    case "tree":
      if (read.path === path || (read.is === "tree" && isBeneath(path, read.path))) return none;
      if (!isBeneath(read.path, path)) return undefined;
      if (change.is !== "folder") return none;
      // The entries stay, but safe_parents (files.sh) accepts only a closed folder of root or of the entry's own owner.
      return !change.isOpen && ["root", "0", read.is === "path" ? read.owner : undefined].includes(change.owner)
        ? both
        : inOrder;
    case "existing":
      if (read.path !== path && !isBeneath(read.path, path)) return undefined;
      return change.is === "folder" ? both : wouldChange;
    case "program":
      return change.is === "tree" || path === read.name || path.endsWith(`/${read.name}`) ? "12" : undefined;
    case "command":
      // Making a folder, or changing its owner, does not change its entries.
      return mentionsPath(read.text, path, { beneath: change.is !== "folder" }) ? none : undefined;
    default:
      return undefined;
  }
}

function afterAccount(
  { is, name, renumbers, goes }: Extract<NodeResource, { is: "user" | "group" }>,
  read: NodeResource,
): Survival | undefined {
  if (read.is === "command") return mentionsWord(read.text, name) ? none : undefined;
  if (!("name" in read) || read.name !== name) return undefined;
  if (read.is === is) return none;
  if (read.is !== (is === "user" ? "owner" : "ownerGroup")) return undefined;
  return goes ? none : renumbers ? wouldChange : both;
}

/** Folders where packages put files (Debian's policy manual, 9.1; the FHS). */
const ofPackages = "/bin /boot /etc /lib /lib32 /lib64 /opt /run /sbin /usr /var".split(" ");
/** Folders among these that belong to the operator or to kcore. */
const notOfPackages = "/etc/kcore /etc/systemd/system /usr/local /var/lib/kcore".split(" ");

function isOfPackages(path: string): boolean {
  return isUnder(path, ofPackages) && !isUnder(path, notOfPackages);
}

function afterPackages(read: NodeResource): Survival | undefined {
  switch (read.is) {
    case "path":
      if (!isOfPackages(read.path)) return undefined;
      // dpkg keeps an existing configuration file (--force-confold).
      return isBeneath(read.path, "/etc") ? "21" : unlessAffected;
    case "tree":
      return isOfPackages(read.path) ? unlessAffected : undefined;
    case "noFile":
      return isOfPackages(read.path) ? "01" : undefined;
    case "user":
    case "group":
    case "service":
    case "packages":
      return "21";
    case "owner":
    case "ownerGroup":
      return both;
    case "existing":
    case "program":
      return "12";
    case "noPackages":
    case "noService":
      return "01";
    case "system":
    case "command":
      return unlessAffected;
    default:
      return undefined;
  }
}

function afterService(
  { is, name }: Extract<NodeResource, { is: "service" | "unit" }>,
  read: NodeResource,
): Survival | undefined {
  if (read.is === "command") return mentionsWord(read.text, name.replace(/\.service$/, "")) ? none : undefined;
  if (read.is === "system") return is === "service" ? none : undefined;
  if ((read.is !== "service" && read.is !== "noService") || read.name !== name) return undefined;
  return is === "service" ? none : inOrder;
}

function afterCommand(text: string, read: NodeResource): Survival | undefined {
  switch (read.is) {
    case "path":
    case "tree":
      return mentionsPath(text, read.path) ? none : undefined;
    case "existing":
      return mentionsPath(text, read.path) ? wouldChange : undefined;
    case "user":
    case "group":
    case "owner":
    case "ownerGroup":
      return mentionsWord(text, read.name) ? none : undefined;
    case "service":
    case "noService":
      return mentionsWord(text, read.name.replace(/\.service$/, "")) ? none : undefined;
    case "packages":
    case "noPackages":
      return /\b(apt|apt-get|aptitude|dpkg|apk|dnf|yum|rpm)\b/.test(text) ? none : undefined;
    case "disk":
      return mentionsDevice(text) ? none : undefined;
    case "program":
      return "12";
    case "system":
    case "command":
      return unlessAffected;
    default:
      return undefined;
  }
}

function isBeneath(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith("/") ? folder : `${folder}/`) && path !== folder;
}

function isUnder(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || isBeneath(path, folder));
}

/** Whether a text names the path, a folder above it (except `/`) or, with `beneath`, a path beneath it. */
function mentionsPath(text: string, path: string, { beneath = true } = {}): boolean {
  for (const [found] of text.matchAll(/\/[\w@.+:-][\w@.+:/-]*/g)) {
    const named = found.replace(/\/+$/, "");
    if (named === path || isBeneath(path, named) || (beneath && isBeneath(named, path))) return true;
  }
  return false;
}

function mentionsDevice(text: string): boolean {
  return /\/dev\/(?!null\b|zero\b|u?random\b|std|fd\b|tty)/.test(text);
}

function mentionsWord(text: string, word: string): boolean {
  return text.split(/[^\w@.-]+/).some((found) => found === word || found === `${word}.service`);
}
