import { z } from "zod";
import { diskFields, isOneDisk, oneDiskMessage } from "#engine/step/disk-names.ts";
import { Address, EntryName, HostKeyText, LoginName, NodeId, Port, Reference, Role, StateDir } from "./entry-fields.ts";

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
  z
    .strictObject({
      key: z.string().min(1).describe("The key of the taint."),
      value: z.string().default("").describe("The value of the taint."),
      effect: Effect.describe("The effect on work that does not tolerate the taint."),
    })
    .meta({ examples: [{ key: "dedicated", value: "storage", effect: "NoSchedule" }] }),
]);

const Disk = z
  .strictObject({
    ...diskFields,
    use: z
      .enum(["volumes", "os", "ignore"])
      .describe("The purpose: volumes, the operating system, or nothing of kcore's."),
  })
  .refine(isOneDisk, oneDiskMessage)
  .meta({ examples: [{ serial: "S3Z8NB0K", use: "volumes" }] });

const Sudo = z.union([
  z.literal(true).transform(() => ({})),
  z
    .strictObject({ password: Reference.optional().describe("A reference to the password that sudo asks for.") })
    .meta({ examples: [{ password: { command: "pass show n2" } }] }),
]);

const File = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[^\0\n]+$/, "must be one line");

/** How to reach a host: keys of nodes, groups, defaults and jump hosts alike. */
const reach = {
  port: Port.optional().describe("The port of sshd; 22 unless given."),
  user: LoginName.optional().describe("The login name; root unless given."),
  identityFile: File.optional().describe("The private key on the bastion; ~/ and paths relative to the project work."),
  identityPassphrase: Reference.optional().describe("A reference to the key's passphrase."),
  jump: z.array(EntryName).max(8).optional().describe("Names of nodes or of jumps, first hop first."),
};

/** Keys that `defaults` and `groups` may have, too. */
const shared = {
  ...reach,
  sudo: Sudo.optional().describe("true, or a map with a reference to the password."),
  dc: EntryName.optional().describe("The datacenter; DC1 unless given."),
  roles: z.array(Role).optional().describe("controller, worker, or others of your own."),
  labels: Labels.optional().describe("Words for targets and the cluster, by key."),
  taints: z.array(Taint).optional().describe("KEY=VALUE:EFFECT, or maps."),
  disks: z.array(Disk).optional().describe("The disks that kcore may use, or shall leave alone."),
  stateDir: StateDir.optional().describe("Where kcore keeps its things on the node; /var/lib/kcore unless given."),
  transport: z
    .enum(["ssh", "openssh", "local"])
    .optional()
    .describe("ssh; openssh: by OpenSSH's own client; or local for this machine itself."),
  vars: z.record(z.string(), z.unknown()).optional().describe("Anything; expressions see it as vars."),
};

export const SharedSchema = z.strictObject(shared);

export const NodeSchema = z.strictObject({
  ...shared,
  address: Address.optional().describe("IP address or host name; required unless transport is local."),
  id: NodeId.optional().describe("A UUID; else one made from the name."),
  formerIds: z
    .array(NodeId)
    .optional()
    .describe(
      "The ids under which the node was removed; kcore made its disks under the first. kcore roster adopt writes them.",
    ),
  hostKeys: z.array(HostKeyText).optional().describe("Pinned keys, TYPE BASE64; kcore roster trust writes them."),
  consoleLog: File.optional().describe("A file on the bastion with what the node shows on its console."),
  groups: z.array(EntryName).optional().describe("Names of groups, of any roster file; later ones win."),
});
export type WrittenNode = z.output<typeof NodeSchema>;

export const JumpSchema = z.strictObject({
  ...reach,
  address: Address.describe("IP address or host name."),
  hostKeys: z.array(HostKeyText).optional().describe("Pinned keys, TYPE BASE64."),
});

export const FILE_KEYS = ["defaults", "groups", "nodes", "jumps"] as const;
