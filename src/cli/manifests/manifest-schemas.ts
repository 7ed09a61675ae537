import { z } from "zod";
import { EntryName, NodeId } from "#engine/roster/entry-fields.ts";
import { NodeSchema } from "#engine/roster/entry-schema.ts";
import { LayoutSchema } from "../layout/layout-schema.ts";

const Text = z.string().min(1);
const envelope = { apiVersion: Text.optional(), kind: Text };

/** `kind: Cluster`: a context with its CA, as `kcore create cluster` makes it. */
export const ClusterSchema = z.strictObject({
  ...envelope,
  metadata: z.strictObject({ name: Text }),
  spec: z
    .strictObject({ controller: Text.optional(), certsDir: Text.optional(), force: z.boolean().default(false) })
    .prefault({}),
});

const Backend = z.enum(["filesystem", "lvm", "zfs"]);

/** What a machine gets on its disk: the state `system/NAME` of the project, or the shipped one. */
const InstallerName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "must be the name of a state below system/");

/** `kind: NodeInstall`: what `kcore node install` is told by flags. */
export const NodeInstallSchema = z.strictObject({
  ...envelope,
  metadata: z.strictObject({ name: Text.optional() }).prefault({}),
  spec: z.strictObject({
    node: Text,
    osDisk: Text,
    osInstalled: z.boolean().default(false),
    encryptOs: z.boolean().optional(),
    osUnlock: Text.optional(),
    os: InstallerName.optional(),
    dataDisks: z.array(Text).default([]),
    dataDiskMode: Backend.optional(),
    storageBackend: Backend.optional(),
    lvmVgName: Text.optional(),
    encryptDisks: z.boolean().optional(),
    diskUnlock: z.enum(["keyFile", "tpm2"]).optional(),
    lvmLvPrefix: Text.optional(),
    zfsPoolName: Text.optional(),
    zfsDatasetPrefix: Text.optional(),
    runController: z.boolean().default(false),
    joinControllers: z.array(Text).default([]),
    dcId: EntryName.optional(),
    hostname: Text.optional(),
    nodeId: Text.optional(),
    disableVxlan: z.boolean().default(false),
    insecure: z.boolean().default(true),
    hostKey: Text.optional(),
  }),
});

const words = z.record(z.string(), z.string());

/** `kind: Node`: a roster entry, and what the cluster shall expect of the node. */
export const NodeManifestSchema = z.strictObject({
  ...envelope,
  metadata: z.strictObject({ name: EntryName, labels: words.optional(), annotations: words.optional() }),
  spec: z.strictObject({ ...NodeSchema.shape, nodeId: NodeId.optional(), dcId: EntryName.optional() }).prefault({}),
});

/** `kind: DiskLayout`: what lies on disks of a node, in our words or in disko's. */
export const DiskLayoutSchema = z.strictObject({
  ...envelope,
  metadata: z.strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9_-]+$/, "must be a name of letters, digits, “_” and “-”")
      .refine((name) => name !== "default", "is a name that is kept"),
  }),
  spec: z.strictObject({
    nodeId: Text,
    diskLayout: LayoutSchema.optional(),
    layoutNix: Text.optional(),
    layoutNixFile: Text.optional(),
  }),
});
