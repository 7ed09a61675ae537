import { z } from "zod";
import type { StepContext } from "./define.ts";
import { Size } from "./fields.ts";
import { uuidOf } from "./uuid.ts";

/** The name of a ZFS pool (zpool-create(8)): no word of its command line, no Solaris name of a disk. */
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

/** Properties that are amounts: zfs(8) shows them in bytes on request, and `none` as 0. */
const sizes = ["quota", "refquota", "reservation", "refreservation", "recordsize", "volblocksize"];

/** Properties by name, each value as ZFS shows it. Properties of other arguments, and kcore's marks, are refused. */
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
 * The pool's comment: of all texts that a pool can carry, its disks show only this one without an import. At most 32
 * bytes.
 */
export function poolMark(guid: string): string {
  return `kcore ${guid.replaceAll("-", "").slice(0, 24)}`;
}

/**
 * A stable host id, by which ZFS knows the owner of a pool, also after a new installation of the node. Eight hex
 * digits, not all zero.
 */
export function hostId({ node, nodeId }: Node): string {
  return `1${uuidOf(nodeId ?? node, "host id").slice(1, 8)}`;
}
