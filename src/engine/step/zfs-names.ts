import { z } from "zod";
import type { StepContext } from "./define.ts";
import { Size } from "./fields.ts";
import { uuidOf } from "./uuid.ts";

/** The name of a ZFS pool: none that zpool-create(8) reserves, and no disk name of Solaris. */
export const PoolName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/, "must be a name of letters, digits, “_”, “.” and “-”")
  .refine((name) => !/^(?:mirror|raidz|draid|spare)|^(?:log|cache|special|dedup)$|^c\d/.test(name), {
    message: "is a name that ZFS keeps for itself",
  });

/** A dataset's name without its pool's: `images`, `guests/images`. */
export const DatasetName = z
  .string()
  .max(160)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]*(?:\/[A-Za-z0-9][A-Za-z0-9_.:-]*)*$/, "must be a dataset's name behind its pool");

/** Properties with a size as value: zfs(8) prints them in bytes (-p), and `none` as 0. */
const sizes = ["quota", "refquota", "reservation", "refreservation", "recordsize", "volblocksize"];

/** Properties by name, each value in the form that ZFS prints. Those in `others`, which other arguments set, are refused. */
export function Properties(others: readonly string[]): z.ZodType<Readonly<Record<string, string>>> {
  return z
    .record(
      z
        .string()
        .regex(/^[a-z][a-z0-9_.:@-]{0,127}$/, "must be a property's name")
        .refine((name) => !others.includes(name), "cannot be set here"),
      z
        .union([z.int().nonnegative(), z.string().regex(/^[!-~](?:[ -~]{0,254}[!-~])?$/, "must be printable ASCII")])
        .transform(String),
    )
    .transform((given) => Object.fromEntries(Object.entries(given).map(([name, value]) => [name, shown(name, value)])));
}

function shown(name: string, value: string): string {
  if (!sizes.includes(name)) return value;
  if (value === "none") return "0";
  const { data } = Size.safeParse(value);
  return data === undefined ? value : String(data);
}

/** Properties for which ZFS would ask for a passphrase. kcore encrypts below the pool instead (luks.opened). */
export const ofEncryption = ["encryption", "keyformat", "keylocation", "pbkdf2iters"];

type Node = Pick<StepContext, "node" | "nodeId">;

/** The GUID of a pool that kcore makes. */
export function poolGuid({ node, nodeId }: Node, name: string): string {
  return uuidOf(nodeId ?? node, "pool", name);
}

/**
 * The pool's comment, at most 32 bytes: the only text of a pool that its disks show without an import.
 */
export function poolMark(guid: string): string {
  return `kcore ${guid.replaceAll("-", "").slice(0, 24)}`;
}

/**
 * A host id (eight hex digits, not zero) by which ZFS recognizes the pool's owner; it stays the same when the node is
 * installed again.
 */
export function hostId({ node, nodeId }: Node): string {
  return `1${uuidOf(nodeId ?? node, "host id").slice(1, 8)}`;
}
