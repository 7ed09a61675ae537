import { z } from "zod";
import { parseSize } from "#base/units.ts";
import { DotText, Labels, Name, Time } from "./schemas.ts";

/** The name of a VM, network or image. */
export const RecordName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "must be a name such as web-1");
const HttpsUrl = z.string().regex(/^https:\/\/[^\s/]+\/\S*$/, "must be an https URL");
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256: 64 hex digits");
/** Bytes, or text such as `4GiB`, whose units are powers of 1024. */
const Size = z.union([
  z.int().min(0),
  z
    .string()
    .regex(/^\d+(\.\d+)?\s*([KMGTPkmgtp]([Ii]?[Bb])?|[Bb])?$/, "must be a size such as 512M or 10GiB")
    .transform((text) => parseSize(text) as number),
]);

const VmSpec = z.object({
  cpus: z.int().min(1).max(1024).describe("The number of cores."),
  memory: Size.describe("The memory, such as 4GiB."),
  disk: Size.default(0).describe("The space on the node's volumes, such as 20GiB."),
  image: z.union([HttpsUrl, RecordName]).optional().describe("A recorded image, or an https URL with its SHA-256."),
  imageSha256: Sha256.optional().describe("The SHA-256 of an image that is a URL."),
  networks: z.array(RecordName).max(8).default([]).describe("Recorded networks; the first has the default route."),
  dc: Name.optional().describe("Only nodes of this datacenter."),
  node: Name.optional().describe("Only this node: its name or id."),
});
export type VmSpec = z.output<typeof VmSpec>;

/** The kinds of records that controllers check, with their fields. */
export const recordSpecs = {
  VM: VmSpec,
  Network: z.object({
    type: z.enum(["nat", "bridge", "vxlan"]).default("nat").describe("nat unless given; or bridge, vxlan."),
    gatewayIp: z.ipv4().optional().describe("The gateway's IPv4 address."),
    internalNetmask: z.ipv4().default("255.255.255.0").describe("The netmask; 255.255.255.0 unless given."),
    externalIp: z.ipv4().optional().describe("The address under which others see its VMs."),
    vlanId: z.int().min(0).max(4094).default(0).describe("The VLAN's tag; 0: none."),
    dc: Name.optional().describe("The only datacenter that has it."),
  }),
  Image: z.object({
    url: HttpsUrl.describe("Where the image is, by https."),
    sha256: Sha256.describe("The SHA-256 of its bytes."),
    format: z.enum(["qcow2", "raw"]).default("qcow2").describe("qcow2 unless given; or raw."),
  }),
} as const;
export type RecordKind = keyof typeof recordSpecs;
export const recordKinds = Object.keys(recordSpecs) as readonly RecordKind[];

/** The schema of a record of the kind. */
export function recordSchema(kind: RecordKind) {
  const schema = z.strictObject({ labels: Labels.default({}), spec: recordSpecs[kind].strict() });
  return schema.refine(({ spec }) => isImageSure(spec as Partial<VmSpec>), {
    path: ["spec", "imageSha256"],
    message: "is for an image that is a URL, which needs it",
  });
}

function isImageSure({ image = "", imageSha256 }: Partial<VmSpec>): boolean {
  return image.includes(":") === (imageSha256 !== undefined);
}

/** A VM as controllers keep it; `placed` is the id of its node. */
export const VmRecord = z.object({ labels: Labels.default({}), spec: VmSpec, placed: z.string().default("") });

export const VmView = VmRecord.omit({ placed: true }).extend({
  name: z.string(),
  /** `no node`: its node was removed. */
  state: z.enum(["placed", "overcommitted", "no node"]),
  problems: z.array(z.string()),
  /** The id and the name of its node; empty without one. */
  nodeId: z.string(),
  node: z.string(),
  dc: z.string(),
  dot: DotText,
  at: Time,
});
export type VmView = z.output<typeof VmView>;
export const VmList = z.object({ vms: z.array(VmView) });
