import type { SecretReference } from "#engine/params/secret-reference.ts";
import type { SourcePosition } from "#errors/problem.ts";
import type { FactTerm } from "./target-syntax.ts";

export interface Sudo {
  /** Absent: NOPASSWD is expected, and a password is asked for only when sudo demands one. */
  readonly password?: SecretReference;
}

export interface RosterTaint {
  readonly key: string;
  readonly value: string;
  readonly effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
}

/**
 * A disk of a node as the roster names it, never by `/dev/sdX`: by exactly one of `serial`, `wwn`, `byId` and `busPath`, or by `model`,
 * `size` or both.
 */
export interface DiskEntry {
  readonly serial?: string;
  readonly wwn?: string;
  /** A name under /dev/disk/by-id. */
  readonly byId?: string;
  /** A name under /dev/disk/by-path. */
  readonly busPath?: string;
  readonly model?: string;
  /** Bytes; a disk within 2 % of it matches. */
  readonly size?: number;
  readonly use: "volumes" | "os" | "ignore";
}

/** One node of the roster after defaults and groups were merged in. Plain values: `node` in expressions. */
export interface NodeEntry {
  readonly name: string;
  /** UUID; made from the name if the roster has none. `kcore roster add` writes a random one. */
  readonly id: string;
  /** The ids under which the node was removed; its disks were made under the first. */
  readonly formerIds?: readonly string[];
  readonly address: string;
  readonly port: number;
  readonly user: string;
  /** Private key file on the bastion; absent: the agent, then the usual files in ~/.ssh. */
  readonly identityFile?: string;
  readonly identityPassphrase?: SecretReference;
  readonly sudo: Sudo;
  /** Names of nodes, or of entries under the roster's `jumps:`, first hop first. */
  readonly jump: readonly string[];
  /** Pinned keys, each `TYPE BASE64` as in known_hosts without the host field. */
  readonly hostKeys: readonly string[];
  readonly dc: string;
  readonly roles: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly RosterTaint[];
  readonly groups: readonly string[];
  readonly disks: readonly DiskEntry[];
  readonly stateDir: string;
  /** A file on the bastion with the node's console output. */
  readonly consoleLog?: string;
  readonly vars: Readonly<Record<string, unknown>>;
  /** How to reach the node: `ssh`, `openssh` by this machine's own ssh program, or `local` for this machine itself. */
  readonly transport: "ssh" | "openssh" | "local";
}

/** A jump host that is not a node itself. */
export type JumpEntry = Pick<
  NodeEntry,
  "name" | "address" | "port" | "user" | "identityFile" | "identityPassphrase" | "hostKeys" | "jump"
>;

export interface TargetFacts {
  /** For each of these nodes with known facts, whether the term is true. */
  readonly matches: (term: FactTerm, nodes: readonly string[]) => ReadonlyMap<string, boolean>;
  /** Leaves out a node whose match depends on unknown facts; otherwise such a node is an error. */
  readonly skipUnknown: boolean;
}

/** The id from which modules derive the ids of a node's disks: the first former id of an adopted machine, else the node's id. */
export function diskOwnerId({ id, formerIds }: Pick<NodeEntry, "id" | "formerIds">): string {
  return formerIds?.[0] ?? id;
}

export interface Roster {
  /** In file order. */
  readonly nodes: ReadonlyMap<string, NodeEntry>;
  readonly jumps: ReadonlyMap<string, JumpEntry>;
  /** The places of the entries of nodes and jump hosts, also of faulty ones; for problems. */
  readonly positions: ReadonlyMap<string, SourcePosition>;
  /** The files read, relative to the project. */
  readonly files: readonly string[];
  /** The known facts of nodes, for targets with `fact:`; absent: none. */
  readonly facts?: TargetFacts;
}
