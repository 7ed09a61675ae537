import { createPublicKey, type KeyObject } from "node:crypto";
import { lstat, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { type ActionContext, defineAction } from "#engine/orchestrate/action.ts";
import type { Trust } from "#engine/project/project.ts";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError } from "#errors/problem.ts";
import type { NodeAccess } from "#kubernetes/kubeconfig.ts";
import { foreignRenewalReason, readForeignCa, readForeignCaIfAny, type ForeignLeaf } from "#pki/foreign-ca.ts";
import { generateKey, proveKey, publicDer, readPrivateKey } from "#pki/keys.ts";
import { makeFolder } from "#base/folder.ts";
import { ifThere, replaceFile } from "#base/file.ts";
import { AuthorityName, CertificateName, issueByForeignCa } from "./foreign-authority.ts";
import { InProject, safeProjectPath } from "./in-project.ts";

const Args = z.strictObject({
  file: InProject.describe(
    "The kubeconfig's file in the project, such as .kcore/admin.conf; only its owner may read it",
  ),
  server: z.url({ protocol: /^https$/ }).describe("Where the API server is reached from this machine"),
  authority: AuthorityName.default("kubernetes").describe("The cluster's CA, as pki.createAuthority made it"),
  user: CertificateName.default("kubernetes-admin").describe("The user's name in the cluster"),
  groups: z.array(CertificateName).default(["system:masters"]).describe("The user's groups in the cluster"),
  days: z.int().min(1).max(3650).default(365).describe("Days that the certificate lasts; renewed in the last third"),
});
type Args = z.output<typeof Args>;

/**
 * Writes a kubeconfig with a key and certificate of its own, for a cluster whose CA is on this machine. A present file stays while it fits
 * the arguments. The output `kubeconfig` is the file's path, for the other actions of Kubernetes.
 * ```yaml
 * - { id: admin, run: kubernetes.kubeconfig, file: .kcore/admin.conf, server: "https://192.0.2.31:6443", once: true }
 * ```
 */
export const kubernetesKubeconfig = defineAction({
  name: "kubernetes.kubeconfig",
  summary: "Keeps a kubeconfig on this machine, with a certificate of a CA that pki.createAuthority made.",
  outputs: ["kubeconfig"],
  bastionNames: ["file", "server"],
  args: Args,
  async run(args, context) {
    const outputs = { kubeconfig: args.file };
    const ca = await readForeignCa(context.home, args.authority);
    const path = await safeProjectPath(args.file, context);
    const { key, reason } = await inspectFile(path, args, ca, context.trust);
    if (reason === undefined) return { changed: false, outputs };
    const used = key ?? generateKey();
    const proof = { challenge: context.challenge, signature: proveKey(used, context.challenge) };
    const { certificate, until } = await issueByForeignCa(args.authority, leafOf(args, used), proof, context);
    await makeFolder(dirname(path), { mode: 0o700 });
    await replaceFile(path, kubeconfigText(args, { ca, certificate, key: used }));
    context.note(`wrote ${args.file} for ${args.user} until ${until}: ${reason}`);
    return { changed: true, outputs };
  },
  async plan(args, context: ActionContext) {
    const ca = await readForeignCaIfAny(context.home, args.authority);
    if (ca === undefined) return "unknown";
    const { reason } = await inspectFile(await safeProjectPath(args.file, context), args, ca, context.trust);
    return reason === undefined ? { changed: false, outputs: { kubeconfig: args.file } } : "unknown";
  },
});

/** The key in the present file, and the reason why the file has to be written; without a reason the file stays. */
async function inspectFile(
  path: string,
  args: Args,
  ca: string,
  trust: Trust | undefined,
): Promise<{ readonly key?: KeyObject; readonly reason?: string }> {
  const found = await ifThere(lstat(path));
  if (found === undefined) return { reason: "new" };
  if (found.isDirectory())
    throw new KcoreError({ code: "FILE_IN_THE_WAY", message: `${path} is a folder`, hint: "name a file" });
  // Another user perhaps knows the key.
  const owners = trust?.uids ?? [process.getuid?.()];
  if (!found.isFile() || !owners.includes(found.uid) || (found.mode & 0o077) !== 0)
    return { reason: "others may have read or written it" };
  try {
    const text = await readFile(path, "utf8");
    const { users } = parsePlainYaml(text) as { users: [{ user: Record<string, string> }] };
    const { "client-key-data": keyData = "", "client-certificate-data": data = "" } = users[0].user;
    const key = readPrivateKey(Buffer.from(keyData, "base64").toString("utf8"), path);
    const certificate = Buffer.from(data, "base64").toString("utf8");
    const reason =
      foreignRenewalReason(certificate, leafOf(args, key), ca, Date.now()) ??
      (text === kubeconfigText(args, { ca, certificate, key }) ? undefined : "it says something else");
    return { key, ...(reason !== undefined && { reason }) };
  } catch {
    return { reason: "it cannot be read" };
  }
}

function leafOf({ user, groups, days }: Args, key: KeyObject): ForeignLeaf {
  const spki = publicDer(createPublicKey(key)).toString("base64");
  return { commonName: user, organizations: groups, hosts: [], usages: ["client"], days, spki };
}

function kubeconfigText(
  { server, authority, user }: Args,
  { ca, certificate, key }: { readonly ca: string; readonly certificate: string; readonly key: KeyObject },
): string {
  const data = (text: string): string => Buffer.from(text).toString("base64");
  return kubeconfigOf({
    server,
    cluster: authority,
    user,
    ca: data(ca),
    credentials: {
      "client-certificate-data": data(certificate),
      "client-key-data": data(key.export({ type: "pkcs8", format: "pem" }) as string),
    },
  });
}

/** The text of a kubeconfig with one context, USER@CLUSTER. */
export function kubeconfigOf({
  server,
  cluster,
  user,
  ca,
  credentials,
}: NodeAccess & { readonly server: string; readonly cluster: string; readonly user: string }): string {
  const context = `${user}@${cluster}`;
  return printYaml({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: cluster, cluster: { server, "certificate-authority-data": ca } }],
    users: [{ name: user, user: credentials }],
    contexts: [{ name: context, context: { cluster, user } }],
    "current-context": context,
  });
}
