import { z } from "zod";
import { EntryName, NodeId } from "#engine/roster/entry-fields.ts";
import { NodeSchema } from "#engine/roster/entry-schema.ts";
import { LayoutSchema } from "#engine/layout/layout-schema.ts";
import { ClusterUpdateSchema, envelope, Text } from "./cluster-update-schema.ts";
import { recordManifests } from "./record-manifest.ts";

/** `kind: Cluster`: a context with its CA, as `kcore create cluster` makes it. */
export const ClusterSchema = z.strictObject({
  ...envelope,
  metadata: z.strictObject({ name: Text.describe("The context's name.") }).describe("The name."),
  spec: z
    .strictObject({
      controller: Text.optional().describe("An endpoint of the cluster, HOST:PORT."),
      certsDir: Text.optional().describe("The context's folder; kcore refuses any other."),
      force: z.boolean().default(false).describe("Makes the CA even if a controller answers; replaces no context."),
    })
    .prefault({})
    .describe("As the flags of kcore create cluster say it."),
});

const Backend = z.enum(["filesystem", "lvm", "zfs"]);

/** The system that a machine gets on its disk: the state `system/NAME` of the project, or the shipped one. */
const InstallerName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "must be the name of a state below system/");

/** `kind: NodeInstall`: the flags of `kcore node install`. */
export const NodeInstallSchema = z.strictObject({
  ...envelope,
  metadata: z
    .strictObject({ name: Text.optional().describe("The host name, or the id if it is a UUID.") })
    .prefault({})
    .describe("The name."),
  spec: z
    .strictObject({
      node: Text.describe("The machine itself, HOST:PORT; port 9091 stands for the roster's SSH port, or 22."),
      osDisk: Text.describe("The disk of the operating system."),
      osInstalled: z.boolean().default(false).describe("The operating system is there already."),
      encryptOs: z.boolean().optional().describe("LUKS2 under the system's root filesystem."),
      osUnlock: Text.optional().describe("The way to unlock the root filesystem at boot, besides the console: ssh."),
      os: InstallerName.optional().describe(
        "The system that a live machine gets: debian, nixos, or NAME of a state system/NAME.",
      ),
      dataDisks: z.array(Text).default([]).describe("Disks for volumes; each must be blank, or already be kcore's."),
      dataDiskMode: Backend.optional().describe("The use of data disks; storageBackend takes precedence."),
      storageBackend: Backend.optional().describe("The use of data disks: file systems, a volume group or a pool."),
      lvmVgName: Text.optional().describe("The volume group's name, for lvm."),
      encryptDisks: z.boolean().optional().describe("LUKS2 under each data disk's filesystem, volume group or pool."),
      diskUnlock: z.enum(["keyFile", "tpm2"]).optional().describe("The way to open encrypted data disks at boot."),
      lvmLvPrefix: Text.optional().describe("Prefix of logical volumes, for lvm."),
      zfsPoolName: Text.optional().describe("The pool's name, for zfs."),
      zfsDatasetPrefix: Text.optional().describe("Prefix of datasets, for zfs."),
      runController: z.boolean().default(false).describe("Run a controller on the node."),
      joinControllers: z.array(Text).default([]).describe("Controllers that the node belongs to, HOST:PORT."),
      dcId: EntryName.optional().describe("The node's datacenter; DC1 unless given."),
      hostname: Text.optional().describe("The node's name."),
      nodeId: Text.optional().describe("The node's id, a UUID; else a new one."),
      disableVxlan: z.boolean().default(false).describe("No VXLAN overlay on this node."),
      insecure: z.boolean().default(true).describe("Show the host key of a new machine, ask, and pin it."),
      identityFile: Text.optional().describe("The private key to log in with: ~/…, or relative to the project."),
      hostKey: Text.optional().describe("Pin the host key if it has this fingerprint, without asking."),
    })
    .describe("As the flags of kcore node install say it."),
});

const words = z.record(z.string(), z.string());

/** `kind: Node`: a roster entry, with the labels and taints that the cluster shall expect. */
export const NodeManifestSchema = z.strictObject({
  ...envelope,
  metadata: z
    .strictObject({
      name: EntryName.describe("The node's name in the roster."),
      labels: words.optional().describe("Labels; node-role.kubernetes.io/ROLE gives a role."),
      annotations: words.optional().describe("metalk8s.scality.com/ssh-* say how the node is reached."),
    })
    .describe("The name."),
  spec: z
    .strictObject({
      ...NodeSchema.shape,
      nodeId: NodeId.optional().describe("The same as id."),
      dcId: EntryName.optional().describe("The same as dc."),
    })
    .prefault({})
    .describe("The roster entry of a node."),
});

/** `kind: DiskLayout`: the layout of a node's disks, in kcore's words or in disko's. */
export const DiskLayoutSchema = z.strictObject({
  ...envelope,
  metadata: z
    .strictObject({
      name: z
        .string()
        .regex(/^[A-Za-z0-9_-]+$/, "must be a name of letters, digits, “_” and “-”")
        .refine((name) => name !== "default", "is a name that is kept")
        .describe("The layout's name."),
    })
    .describe("The name."),
  spec: z
    .strictObject({
      nodeId: Text.describe("A node of the roster, by name or id."),
      diskLayout: LayoutSchema.optional().describe("The layout; else layoutNix or layoutNixFile."),
      layoutNix: Text.optional().describe("The layout in Nix, as disko has it."),
      layoutNixFile: Text.optional().describe("A file beside the manifest with the layout in Nix."),
    })
    .describe("The layout, and its node."),
});

/** The schema of each kind. */
export const manifestSchemas = {
  Cluster: ClusterSchema,
  NodeInstall: NodeInstallSchema,
  Node: NodeManifestSchema,
  DiskLayout: DiskLayoutSchema,
  ClusterUpdate: ClusterUpdateSchema,
  ...recordManifests,
} as const;
