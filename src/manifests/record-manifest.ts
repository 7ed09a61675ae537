import { z } from "zod";
import { RecordName, recordSpecs, type RecordKind } from "#api/record-schemas.ts";
import { Labels } from "#api/schemas.ts";
import { envelope, Text } from "./cluster-update-schema.ts";

const metadata = z
  .strictObject({ name: RecordName.describe("The record's name."), labels: Labels.default({}).describe("Labels.") })
  .describe("The name.");
const Nic = z.strictObject({
  network: RecordName.describe("The network."),
  model: z.literal("virtio").optional().describe("virtio."),
});
const { VM, Network, Image } = recordSpecs;

/** The forerunner names a VM's image as `disks: [{ backendHandle }]`, its networks as `nics: [{ network }]`. */
export const recordManifests = {
  Image: z.strictObject({ ...envelope, metadata, spec: Image.strict().describe("The image.") }),
  Network: z.strictObject({ ...envelope, metadata, spec: Network.strict().describe("The network.") }),
  VM: z.strictObject({
    ...envelope,
    metadata,
    spec: z
      .strictObject({
        ...VM.shape,
        networks: z
          .array(z.union([RecordName, Nic.transform(({ network }) => network)]))
          .max(8)
          .default([])
          .describe("Recorded networks; the first has the default route."),
        disks: z
          .array(z.strictObject({ backendHandle: Text.describe("An https URL.") }))
          .max(1)
          .optional()
          .describe("The image's URL."),
      })
      .transform(({ disks, ...spec }) => ({ ...spec, ...(disks?.[0] && { image: disks[0].backendHandle }) }))
      .describe("The VM's size and conditions; kcore records and places VMs, and runs none."),
  }),
} as const;

/** A record as a manifest or a command describes it. */
export interface WantedRecord {
  readonly kind: RecordKind;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
}
