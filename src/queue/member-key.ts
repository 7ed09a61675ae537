import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFileSync } from "#base/file.ts";
import { makeFolderSync } from "#base/folder.ts";
import { KcoreError } from "#errors/problem.ts";
import type { QueueMember } from "./queue-settings.ts";

/** This machine's own keys: one signs, the other opens data that are encrypted to the machine. */
export interface MemberKey {
  readonly signer: KeyObject;
  /** Of age. */
  readonly identity: string;
}

const fileOf = (home: string): string => join(home, "queue-key.json");

/** The machine's keys; made on first use, in a file that only the user may read. @throws KcoreError QUEUE_KEY */
export async function memberKey(home: string, { make }: { readonly make: boolean }): Promise<MemberKey> {
  const file = fileOf(home);
  if (!existsSync(file)) {
    if (!make)
      throw new KcoreError({
        code: "QUEUE_KEY",
        message: "this machine has no key for the queue yet",
        hint: "kcore queue key makes it, and prints the entry for kcore.yaml",
      });
    const { generate } = await import("#engine/encrypted-values/age.ts");
    const { privateKey } = generateKeyPairSync("ed25519");
    const text = privateKey.export({ type: "pkcs8", format: "pem" });
    makeFolderSync(home);
    replaceFileSync(file, `${JSON.stringify({ key: text, identity: await generate({ postQuantum: false }) })}\n`);
  }
  try {
    const { key, identity } = JSON.parse(readFileSync(file, "utf8")) as Record<"key" | "identity", string>;
    return { signer: createPrivateKey(key), identity };
  } catch (cause) {
    const hint = `remove ${file}, then: kcore queue key`;
    throw new KcoreError({ code: "QUEUE_KEY", message: `${file} does not hold a machine's keys`, hint }, { cause });
  }
}

/** The public half of a machine's keys, as kcore.yaml has them. */
export async function publicHalf({ signer, identity }: MemberKey): Promise<Pick<QueueMember, "key" | "recipient">> {
  const { recipientOf } = await import("#engine/encrypted-values/age.ts");
  return { key: rawKey(createPublicKey(signer)), recipient: (await recipientOf(identity)) ?? "" };
}

/** This machine's entry among the members. @throws KcoreError QUEUE_KEY */
export async function ownMember(
  members: readonly QueueMember[],
  own: MemberKey,
  role: QueueMember["roles"][number],
): Promise<QueueMember> {
  const { key } = await publicHalf(own);
  const member = members.find((one) => one.key === key);
  if (member?.roles.includes(role)) return member;
  throw new KcoreError({
    code: "QUEUE_KEY",
    message: member
      ? `kcore.yaml does not let ${member.name} be a ${role}`
      : "kcore.yaml does not name this machine's key",
    hint: member
      ? `roles: [${[...member.roles, role].join(", ")}]`
      : "kcore queue key prints the entry for queue.members",
  });
}

/** Encrypts a body to members, and signs it: `context` names its use, so that it counts nowhere else. */
export async function sealFor(
  members: readonly QueueMember[],
  { signer }: MemberKey,
  context: string,
  body: unknown,
): Promise<Buffer> {
  const { seal } = await import("#engine/encrypted-values/age.ts");
  const recipients = members.map(({ recipient }) => recipient);
  const sealed = await seal(Buffer.from(JSON.stringify(body)), recipients, { place: "queue", fingerprints: [] });
  const signature = sign(null, signed(context, sealed), signer);
  return Buffer.concat([signature, sealed]);
}

const SIGNATURE_BYTES = 64;

/** The body of {@link sealFor} and its signer; undefined if none of these members signed it for this use, or it is not for this machine. */
export async function openFrom(
  members: readonly QueueMember[],
  { identity }: MemberKey,
  context: string,
  bytes: Buffer,
): Promise<{ readonly member: QueueMember; readonly body: unknown } | undefined> {
  const [signature, sealed] = [bytes.subarray(0, SIGNATURE_BYTES), bytes.subarray(SIGNATURE_BYTES)];
  const member = members.find(({ key }) => verify(null, signed(context, sealed), publicKey(key), signature));
  if (!member) return undefined;
  const { open } = await import("#engine/encrypted-values/age.ts");
  const text = await open(sealed, [identity]);
  return text && { member, body: JSON.parse(Buffer.from(text).toString()) as unknown };
}

function signed(context: string, sealed: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`kcore queue ${context}\n`), sealed]);
}

/** The header of an Ed25519 key in SubjectPublicKeyInfo. */
const SPKI = Buffer.from("302a300506032b6570032100", "hex");

function rawKey(key: KeyObject): string {
  return key.export({ type: "spki", format: "der" }).subarray(SPKI.length).toString("base64");
}

function publicKey(raw: string): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI, Buffer.from(raw, "base64")]), type: "spki", format: "der" });
}
