import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { makeFolder } from "#base/folder.ts";
import { certificatesOf, firstCertificate, isOfBastion } from "#pki/chain.ts";
import { daysLeft, openRoot, renewOperatorIfNeeded } from "#pki/cluster.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { changeControllers, contextFolder, findContext } from "#pki/contexts.ts";
import { replaceFile, readText } from "#base/file.ts";
import { identityOf } from "#pki/identity.ts";
import { issuedFile } from "#pki/issued.ts";
import { isHostName, issueLeaf, certificateNames, type KeyProof } from "#pki/issue.ts";
import { namesExactly, renewalReason, renewDays } from "#pki/expectation.ts";
import { keyFingerprint, publicDer, readPublicKey } from "#pki/keys.ts";
import { issueSubCa, refusalOfSubCa, subCaRenewDays } from "#pki/sub-ca.ts";
import { askOnce } from "#api/ask.ts";
import { ApiRefusal } from "#api/client.ts";
import {
  areAway,
  askingOf,
  checkClockOnce,
  isController,
  nodeOf,
  openContext,
  contextHomeOf,
} from "./cluster-context.ts";
import { Challenge, challengeFor, GeneratedKey } from "./generated-key.ts";
import { onceARun } from "./once-a-run.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  identity: z
    .object({
      nodeKey: GeneratedKey.describe("The key of the node"),
      controllerKey: GeneratedKey.optional().describe("The key of a controller's API"),
      subCaKey: GeneratedKey.optional().describe("The key of a controller's sub-CA"),
    })
    .describe(
      "The outputs that the state kcore/key registered: nodeKey, and of a controller controllerKey and subCaKey",
    ),
  challenge: Challenge,
  hosts: z.array(z.string()).default([]).describe("Further names and addresses for the certificates"),
});
type Args = z.output<typeof Args>;

/** The certificates of a node; a controller has all three. */
const certificateKinds = ["node", "controller", "sub-ca"] as const;
type CertificateKind = (typeof certificateKinds)[number];
const keyArguments = { node: "nodeKey", controller: "controllerKey", "sub-ca": "subCaKey" } as const;
const outputNames = { node: "nodeCert", controller: "controllerCert", "sub-ca": "subCaCert" } as const;

/** A certificate that the node needs, and the present one if it is kept. */
interface WantedCertificate {
  readonly kind: CertificateKind;
  readonly spki: string;
  readonly signature: string;
  readonly file: string;
  /** The present chain in PEM; absent: the certificate has to be issued. */
  readonly kept?: string;
  /** Why the present certificate is not kept; absent: there is none. */
  readonly reason?: string;
}

/**
 * Issues a node's certificate, and for a controller its certificate and its sub-CA. Keeps a valid certificate, also if the
 * agent or controller on the node renewed it. Also renews the operator's certificate when due, and writes a moved
 * controller's address into the context.
 */
export const pkiIssueNode = defineAction({
  name: "pki.issueNode",
  summary: "Issues the certificates of a node and, with the role controller, of its controller; kept while valid.",
  outputs: ["ca", "changed", "controllerCert", "nodeCert", "subCaCert"],
  args: Args,
  async run(args, context) {
    const node = nodeOf("pki.issueNode", args.node, context);
    const examined = await examineCertificates(args, node, context);
    const { folder, wanted, operatorIsDue } = examined;
    const due = wanted.filter(({ kept }) => kept === undefined);
    await recordRenewed(wanted);
    if (due.length === 0 && !operatorIsDue) return resultOf(folder, wanted, false);
    const now = Date.now();
    const authority = await openOnce("authority", folder, context);
    if (await renewOperatorIfNeeded(folder, authority, now)) context.note("renewed the operator's certificate");
    const issued = new Map<CertificateKind, string>();
    for (const item of due) {
      const challenge = args.challenge ?? challengeFor(node, context);
      const pem = await issueWanted(
        item,
        { challenge, signature: item.signature },
        { args, node, folder, context, now },
      );
      // Before the file is replaced: only the former certificate says which endpoint was this controller's.
      if (item.kind === "controller") await followController(node, context);
      await makeFolder(dirname(item.file), { mode: 0o700 });
      await replaceFile(item.file, pem, { mode: 0o644 });
      issued.set(item.kind, pem);
      context.note(describeIssued(item, pem, node.name));
    }
    const complete = wanted.map((item) => ({ ...item, kept: issued.get(item.kind) ?? item.kept ?? "" }));
    return resultOf(folder, complete, due.length > 0);
  },
  async plan(args, context) {
    const { folder, wanted } = await examineCertificates(args, nodeOf("pki.issueNode", args.node, context), context);
    return wanted.every(({ kept }) => kept !== undefined) ? resultOf(folder, wanted, false) : "unknown";
  },
});

/** Writes the present address of a moved controller into the context. */
async function followController({ name }: NodeEntry, context: ActionContext): Promise<void> {
  const { name: cluster, controllers } = await openContext(context);
  if (await changeControllers(contextHomeOf(context), cluster, () => controllers))
    context.note(`context ${cluster} follows ${name}: its controllers are ${controllers.join(", ")}`);
}

async function issueWanted(
  { kind, spki }: WantedCertificate,
  proof: KeyProof,
  {
    args,
    node,
    folder,
    context,
    now,
  }: { args: Args; node: NodeEntry; folder: string; context: ActionContext; now: number },
): Promise<string> {
  if (kind === "sub-ca") {
    const root = await openOnce("root", folder, context);
    return issueSubCa(
      { controllerId: node.id, spki, proof, hosts: certificateNames(hostsOf(args, node)) },
      { root, now },
    );
  }
  const authority = await openOnce("authority", folder, context);
  return issueLeaf({ role: kind, id: node.id, ...hostsOf(args, node), spki, proof }, { authority, now }).chain;
}

function describeIssued({ kind, reason = "new" }: WantedCertificate, pem: string, name: string): string {
  const { validToDate, serialNumber } = firstCertificate(pem);
  const until = validToDate.toISOString().slice(0, 10);
  return `issued a ${kind} certificate for ${name} until ${until} (serial ${serialNumber.toLowerCase()}): ${reason}`;
}

const openers = { authority: openIssuer, root: openRoot } as const;

function openOnce<What extends keyof typeof openers>(
  what: What,
  folder: string,
  context: ActionContext,
): ReturnType<(typeof openers)[What]> {
  return onceARun(`${what} ${folder}`, context, async () => {
    await checkClockOnce(context);
    return openers[what](folder, await context.passphrase());
  }) as ReturnType<(typeof openers)[What]>;
}

/** The certificates that the node needs, and which of them are kept, without the passphrase. `operatorIsDue`: the operator's certificate has to be renewed. */
async function examineCertificates(args: Args, node: NodeEntry, context: ActionContext) {
  const { name } = await findContext(contextHomeOf(context), context.context);
  const folder = contextFolder(context.home, name);
  const rootPem = await readText(join(folder, "ca.crt"));
  const operator = firstCertificate(await readText(join(folder, "kctl.crt")));
  const { cluster } = identityOf(operator, "client");
  const now = Date.now();
  const reasonOf = async (kind: CertificateKind, pem: string, spki: string): Promise<string | undefined> =>
    kind === "sub-ca"
      ? subCaReason(pem, {
          cluster,
          controllerId: node.id,
          rootPem,
          spki,
          now,
          hosts: certificateNames(hostsOf(args, node)),
        })
      : (renewalReason(pem, {
          spki,
          hosts: certificateNames(hostsOf(args, node)),
          identity: { cluster, role: kind, id: node.id },
          rootPem,
          now,
        }) ?? (await issuerReason(pem, rootPem, context)));
  const wanted = certificateKinds
    .filter((kind) => kind === "node" || isController(node))
    .map(async (kind): Promise<WantedCertificate> => {
      const { spki = "", proof: signature = "", certificate = "" } = args.identity[keyArguments[kind]]?.facts ?? {};
      const file = issuedFile(folder, node.id, kind);
      const recorded = await readFile(file, "utf8").catch(() => "");
      const item = { kind, spki, signature, file };
      let reason: string | undefined;
      for (const pem of [Buffer.from(certificate, "base64").toString("utf8"), recorded].filter((text) => text !== "")) {
        reason = await reasonOf(kind, pem, spki);
        if (reason === undefined) return { ...item, kept: normalPem(pem) };
      }
      return { ...item, ...(reason === undefined ? {} : { reason }) };
    });
  return { folder, wanted: await Promise.all(wanted), operatorIsDue: daysLeft(operator, now) <= renewDays };
}

/** Why a certificate cannot be kept because of the controller's sub-CA that issued it; undefined: the sub-CA is valid, or the bastion issued it. */
async function issuerReason(pem: string, rootPem: string, context: ActionContext): Promise<string | undefined> {
  const issuer = certificatesOf(pem)[1];
  if (issuer === undefined || isOfBastion(issuer, rootPem)) return undefined;
  const revoked = await revokedKeys(context);
  if (!revoked) return "no controller tells whether the CA that issued it was revoked";
  return revoked.has(keyFingerprint(publicDer(issuer.publicKey))) ? "the CA that issued it was revoked" : undefined;
}

/** Why a sub-CA has to be signed anew, in words; undefined: the present one is kept. */
function subCaReason(
  pem: string,
  expected: {
    cluster: string;
    controllerId: string;
    rootPem: string;
    spki: string;
    hosts: readonly string[];
    now: number;
  },
): string | undefined {
  const refusal = refusalOfSubCa(pem, expected);
  if (refusal !== undefined) return refusal;
  const certificate = firstCertificate(pem);
  if (!publicDer(certificate.publicKey).equals(publicDer(readPublicKey(expected.spki)))) return "the key changed";
  // The controller renews its own certificate under the names of the present one only (ADR 0516).
  if (!namesExactly(certificate, expected.hosts)) return "its controller's names changed";
  const left = daysLeft(certificate, expected.now);
  return left > subCaRenewDays ? undefined : `it expires in ${Math.floor(left)} days`;
}

/** Writes the kept certificates that agents or controllers renewed by themselves to the files of issued ones. */
async function recordRenewed(wanted: readonly WantedCertificate[]): Promise<void> {
  for (const { kept, file } of wanted) {
    if (kept === undefined || kept === (await readFile(file, "utf8").catch(() => ""))) continue;
    await makeFolder(dirname(file), { mode: 0o700 });
    await replaceFile(file, kept, { mode: 0o644 });
  }
}

/** The same certificates in the form in which `certificate.dropped` writes them. */
function normalPem(pem: string): string {
  return certificatesOf(pem)
    .map((certificate) => `${certificate.toString().trim()}\n`)
    .join("");
}

async function resultOf(folder: string, wanted: readonly WantedCertificate[], changed: boolean): Promise<ActionResult> {
  const certificates: Record<string, string> = {};
  for (const { kind, kept = "" } of wanted) certificates[outputNames[kind]] = kept;
  return {
    changed,
    outputs: { ca: await readText(join(folder, "ca.crt")), ...certificates, changed },
  };
}

/** The host names and addresses for a node's certificates: the roster's name if it is a host name, its address, and the further ones. */
function hostsOf(
  { hosts }: Args,
  { name, address }: NodeEntry,
): { readonly host: string; readonly addresses: string[] } {
  return isHostName(name) ? { host: name, addresses: [address, ...hosts] } : { host: address, addresses: hosts };
}

/** The fingerprints of the keys that the cluster has revoked, read once a run; undefined if no controller tells them. */
function revokedKeys(context: ActionContext): Promise<ReadonlySet<string> | undefined> {
  return onceARun(`revoked keys ${context.home} ${context.context ?? ""}`, context, () => fetchRevokedKeys(context));
}

async function fetchRevokedKeys(context: ActionContext): Promise<ReadonlySet<string> | undefined> {
  const cluster = await openContext(context);
  if (cluster.controllers.length === 0) return undefined;
  try {
    const { certificates } = await askOnce(askingOf(cluster, context, cluster.controllers), (client) =>
      client.call("listCertificates", {}),
    );
    return new Set(certificates.filter(({ status }) => status === "revoked").map(({ spki }) => spki));
  } catch (error) {
    if (areAway(error) || error instanceof ApiRefusal) return undefined;
    throw error;
  }
}
