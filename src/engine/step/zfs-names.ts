import { z } from "zod";
import type { StepContext } from "./define.ts";
import { ByteSize } from "./fields.ts";
import { uuidOf } from "./uuid.ts";

/** The name of a ZFS pool. Names that zpool-create(8) reserves, and names of disks on Solaris, are refused. */
export const PoolName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/, "must be a name of letters, digits, “_”, “.” and “-”")
  .refine((name) => !/^(?:mirror|raidz|draid|spare)|^(?:log|cache|special|dedup)$|^c\d/.test(name), {
    message: "is a name that ZFS keeps for itself",
  });

/** A dataset's name without the pool: `images`, `guests/images`. */
export const DatasetName = z
  .string()
  .max(160)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]*(?:\/[A-Za-z0-9][A-Za-z0-9_.:-]*)*$/, "must be a dataset's name behind its pool");

/** Properties with a size as value: zfs(8) prints them in bytes (-p), and `none` as 0. */
const sizeProperties = ["quota", "refquota", "reservation", "refreservation", "recordsize", "volblocksize"];

/** Properties by name, each value in the form that ZFS prints. Names in `refused` are refused: other arguments set them. */
export function Properties(refused: readonly string[]): z.ZodType<Readonly<Record<string, string>>> {
  return z
    .record(
      z
        .string()
        .regex(/^[a-z][a-z0-9_.:@-]{0,127}$/, "must be a property's name")
        .refine((name) => !refused.includes(name), "cannot be set here"),
      z
        .union([z.int().nonnegative(), z.string().regex(/^[!-~](?:[ -~]{0,254}[!-~])?$/, "must be printable ASCII")])
        .transform(String),
    )
    .transform((given) => Object.fromEntries(Object.entries(given).map(([name, value]) => [name, shown(name, value)])));
}

function shown(name: string, value: string): string {
  if (!sizeProperties.includes(name)) return value;
  if (value === "none") return "0";
  const { data } = ByteSize.safeParse(value);
  return data === undefined ? value : String(data);
}

/** Properties of ZFS's own encryption, which would ask for a passphrase. kcore encrypts below the pool (luks.opened). */
export const encryptionProperties = ["encryption", "keyformat", "keylocation", "pbkdf2iters"];

type Node = Pick<StepContext, "node" | "nodeId">;

/** kcore's UUID for a pool that it makes; the pool itself has only a part of it, as {@link poolMark}. */
export function poolGuid({ node, nodeId }: Node, name: string): string {
  return uuidOf(nodeId ?? node, "pool", name);
}

/** The pool's comment (30 of ZFS's 32 bytes): the only text of kcore's that a pool's disks show without an import. */
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
