import { z } from "zod";
import { Reference } from "#engine/roster/entry-fields.ts";

const Member = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]*$/, "must be a name such as bastion-a")
    .describe("The machine's name in messages and records."),
  roles: z
    .array(z.enum(["coordinator", "worker"]))
    .min(1)
    .describe("Whether the machine may put runs on the queue (coordinator), and take nodes (worker)."),
  key: z
    .string()
    .regex(/^[A-Za-z0-9+/]{43}=$/, "must be the key that kcore queue key printed")
    .describe("The public key of its signatures: Ed25519, base64."),
  recipient: z
    .string()
    .regex(/^age1/, "must be an age recipient, as kcore queue key printed it")
    .describe("The age recipient to which the runs' data are encrypted."),
});
export type QueueMember = z.output<typeof Member>;

const repeated = (names: readonly string[]): boolean => new Set(names).size < names.length;

/** `queue` in kcore.yaml: a Redis over which several machines share the nodes of a run (docs/scale.md). */
export const Queue = z.strictObject({
  url: z
    .string()
    .refine((text) => URL.canParse(text) && /^rediss?:$/.test(new URL(text).protocol), {
      message: "must be an address such as rediss://kcore@queue.example:6379",
    })
    .refine((text) => !URL.canParse(text) || new URL(text).password === "", {
      message: "must not hold the password: use “password”",
    })
    .describe("The address of Redis: redis://USER@HOST:PORT, or rediss:// for TLS."),
  password: Reference.optional().describe("A reference to the password of Redis: env:NAME, file:PATH or command:CMD."),
  ca: z.string().min(1).optional().describe("A file in the project with the CA of Redis' certificate, in PEM."),
  members: z
    .array(Member)
    .min(1)
    .refine((members) => !repeated(members.map(({ name }) => name)), "names a member twice")
    .refine((members) => !repeated(members.map(({ key }) => key)), "has a key twice")
    .describe("The machines that share runs; kcore queue key prints a machine's entry."),
});
export type QueueSettings = z.output<typeof Queue>;
