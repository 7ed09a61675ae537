import { z } from "zod";
import { diskFields, isOneDisk, namesOneDisk } from "#engine/step/disk-names.ts";
import { Address, EntryName, HostKey, LoginName, NodeId, Port, Reference, Role, StateDir } from "./entry-fields.ts";

const Labels = z.record(
  z
    .string()
    .regex(/^[A-Za-z0-9]([A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?$/, "must be letters, digits, “.”, “_”, “/” or “-”"),
  z.string().max(255),
);

const Effect = z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]);
const Taint = z.union([
  z
    .string()
    .regex(/^[^=:\s]+(=[^=:\s]*)?:(NoSchedule|PreferNoSchedule|NoExecute)$/, "must be KEY=VALUE:EFFECT")
    .transform((text) => {
      const [, key = "", value = "", effect = ""] = /^([^=:]+)=?([^:]*):(\w+)$/.exec(text) ?? [];
      return { key, value, effect: effect as z.output<typeof Effect> };
    }),
  z.strictObject({ key: z.string().min(1), value: z.string().default(""), effect: Effect }),
]);

const Disk = z
  .strictObject({ ...diskFields, use: z.enum(["volumes", "os", "ignore"]) })
  .refine(isOneDisk, namesOneDisk);

const Sudo = z.union([z.literal(true).transform(() => ({})), z.strictObject({ password: Reference.optional() })]);

const File = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[^\0\n]+$/, "must be one line");

/** How a host is reached: what nodes, groups, defaults and jump hosts may all say. */
const reach = {
  port: Port.optional(),
  user: LoginName.optional(),
  identityFile: File.optional(),
  identityPassphrase: Reference.optional(),
  jump: z.array(EntryName).max(8).optional(),
};

/** What may be shared by `defaults` and `groups`. */
const shared = {
  ...reach,
  sudo: Sudo.optional(),
  dc: EntryName.optional(),
  roles: z.array(Role).optional(),
  labels: Labels.optional(),
  taints: z.array(Taint).optional(),
  disks: z.array(Disk).optional(),
  stateDir: StateDir.optional(),
  transport: z.enum(["ssh", "openssh", "local"]).optional(),
  vars: z.record(z.string(), z.unknown()).optional(),
};

export const SharedSchema = z.strictObject(shared);

export const NodeSchema = z.strictObject({
  ...shared,
  address: Address.optional(),
  id: NodeId.optional(),
  hostKeys: z.array(HostKey).optional(),
  consoleLog: File.optional(),
  groups: z.array(EntryName).optional(),
});
export type WrittenNode = z.output<typeof NodeSchema>;

export const JumpSchema = z.strictObject({ ...reach, address: Address, hostKeys: z.array(HostKey).optional() });

/** The parts of a roster file. */
export const FILE_KEYS = ["defaults", "groups", "nodes", "jumps"] as const;
