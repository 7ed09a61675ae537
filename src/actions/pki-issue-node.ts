import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import type { ActionContext, ActionResult } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/model.ts";
import { parsePlainYaml, printYaml } from "#engine/source/plain.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { firstCertificate } from "#pki/certificate.ts";
import { daysLeft, openAuthority, renewOperatorIfNeeded } from "#pki/cluster.ts";
import { contextFolder, findContext, readText } from "#pki/contexts.ts";
import { replaceFile } from "#pki/files.ts";
import { identityOf } from "#pki/identity.ts";
import { isHostName, issueLeaf, namesOf, renewalReason, renewDays } from "#pki/issue.ts";
import type { Authority } from "#pki/issue.ts";

const spki = z.string().min(1).describe("The node's public key, PEM or base64 DER: fact spki of key.generated");
const proof = z
  .string()
  .min(1)
  .describe("Signature over the challenge by the private key, base64: fact proof of key.generated");
const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  spki,
  proof,
  challenge: z
    .string()
    .min(1)
    .optional()
    .describe("What was signed; unless given: kcore proof of possession RUN-ID NODE-ID"),
  controllerSpki: spki.optional().describe("The controller's own public key; the node's unless given"),
  controllerProof: proof.optional().describe("The proof that belongs to controllerSpki"),
  hosts: z.array(z.string()).default([]).describe("Further names and addresses for the certificates"),
});
type Args = z.output<typeof Args>;
const roles = ["node", "controller"] as const;
type LeafRole = (typeof roles)[number];

/** What has to hold for one certificate, and what is there. */
interface Wanted {
  readonly role: LeafRole;
  readonly key: { readonly spki: string; readonly proof: string };
  readonly file: string;
  /** The chain that is kept; absent: to be issued. */
  readonly kept?: string;
  /** Why it has to be issued. */
  readonly reason?: string;
}

/** Issues a node's certificates, and a controller's, from the context's sub-CA; keeps those that are still valid. */
export const pkiIssueNode = defineAction({
  name: "pki.issueNode",
  summary: "Issues the certificates of a node and, with the role controller, of its controller; kept while valid.",
  args: Args,
  async run(args, context) {
    const node = nodeOf(args, context);
    const { folder, wanted, operatorIsDue } = await examine(args, node, context);
    const due = wanted.filter(({ kept }) => kept === undefined);
    if (due.length === 0 && !operatorIsDue) return resultOf(folder, wanted, false);
    const authority = await openOnce(folder, context);
    const now = Date.now();
    if (await renewOperatorIfNeeded(folder, authority, now)) context.note("renewed the operator's certificate");
    const issued = new Map<LeafRole, string>();
    for (const { role, key, file, reason } of due) {
      // Fresh for each run, and for one node only, so that nobody can use a proof seen elsewhere (S-14).
      const challenge = args.challenge ?? `kcore proof of possession ${context.runId} ${node.id}`;
      const signed = { challenge, signature: key.proof };
      const request = { role, id: node.id, ...hostsOf(args, node), spki: key.spki, proof: signed };
      const { chain, notAfter, serial } = issueLeaf(request, { authority, now });
      await mkdir(join(folder, "issued"), { recursive: true, mode: 0o700 });
      await replaceFile(file, chain, { mode: 0o644 });
      issued.set(role, chain);
      const until = notAfter.toISOString().slice(0, 10);
      context.note(
        `issued a ${role} certificate for ${node.name} until ${until} (serial ${serial}): ${reason ?? "new"}`,
      );
    }
    const complete = wanted.map((item) => ({ ...item, kept: issued.get(item.role) ?? item.kept ?? "" }));
    return resultOf(folder, complete, due.length > 0);
  },
  async plan(args, context) {
    const { folder, wanted } = await examine(args, nodeOf(args, context), context);
    return wanted.every(({ kept }) => kept !== undefined) ? resultOf(folder, wanted, false) : "unknown";
  },
});

const opened = new Map<string, Promise<Authority>>();

/** Opening the CA's key takes 0.2 s of pure CPU on purpose (ADR 0111): once a run is enough for any number of nodes. */
function openOnce(folder: string, { runId, passphrase }: ActionContext): Promise<Authority> {
  const key = `${runId} ${folder}`;
  const present = opened.get(key);
  if (present) return present;
  const opening = passphrase().then((phrase) => openAuthority(folder, phrase));
  opened.set(key, opening);
  opening.catch(() => opened.delete(key));
  return opening;
}

/** Finds out, without the passphrase, which certificates have to be issued. */
async function examine(
  args: Args,
  node: NodeEntry,
  { home, context }: ActionContext,
): Promise<{ readonly folder: string; readonly wanted: readonly Wanted[]; readonly operatorIsDue: boolean }> {
  const { name } = await findContext({ home, codec: { parse: parsePlainYaml, print: printYaml } }, context);
  const folder = contextFolder(home, name);
  const issuer = firstCertificate(await readText(join(folder, "sub-ca.crt")));
  const operator = firstCertificate(await readText(join(folder, "kctl.crt")));
  const { cluster } = identityOf(operator, "client");
  const now = Date.now();
  const needed = roles.filter((role) => role === "node" || node.roles.includes(role));
  const wanted = needed.map(async (role): Promise<Wanted> => {
    const key = keyOf(role, args);
    const file = join(folder, "issued", `${node.id}-${role}.crt`);
    const present = await readFile(file, "utf8").catch(() => undefined);
    if (present === undefined) return { role, key, file };
    const identity = { cluster, role, id: node.id };
    const reason = renewalReason(present, {
      spki: key.spki,
      hosts: namesOf(hostsOf(args, node)),
      identity,
      issuer,
      now,
    });
    return { role, key, file, ...(reason === undefined ? { kept: present } : { reason }) };
  });
  return { folder, wanted: await Promise.all(wanted), operatorIsDue: daysLeft(operator, now) <= renewDays };
}

function keyOf(role: LeafRole, args: Args): Wanted["key"] {
  if (role === "node" || args.controllerSpki === undefined) return { spki: args.spki, proof: args.proof };
  return { spki: args.controllerSpki, proof: args.controllerProof ?? "" };
}

async function resultOf(folder: string, wanted: readonly Wanted[], changed: boolean): Promise<ActionResult> {
  const chain = (role: LeafRole): string | undefined => wanted.find((item) => item.role === role)?.kept;
  const controllerCert = chain("controller");
  const outputs = {
    ca: await readText(join(folder, "ca.crt")),
    nodeCert: chain("node") ?? "",
    ...(controllerCert === undefined ? {} : { controllerCert }),
    changed,
  };
  return { changed, outputs };
}

/** The roster's name where it may be a host name, and always the address. */
function hostsOf(
  { hosts }: Args,
  { name, address }: NodeEntry,
): { readonly host: string; readonly addresses: string[] } {
  return isHostName(name) ? { host: name, addresses: [address, ...hosts] } : { host: address, addresses: hosts };
}

function nodeOf({ node: name }: Args, context: ActionContext): NodeEntry {
  const node = name === undefined ? context.node : context.nodes.get(name);
  if (node) return node;
  const hint =
    name === undefined ? "give node: NAME, or each: TARGET in the stage" : suggestHint(name, context.nodes.keys());
  throw new KcoreError({
    code: "NODE_UNKNOWN",
    message: name === undefined ? "pki.issueNode was not told for which node" : `no node “${name}” in the roster`,
    ...(hint === undefined ? {} : { hint }),
  });
}
