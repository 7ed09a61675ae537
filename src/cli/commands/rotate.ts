import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Command } from "commander";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { subCaChallenge } from "#pki/challenges.ts";
import { openAuthority, openRoot, reissueOperator } from "#pki/cluster.ts";
import { replaceFile } from "#pki/files.ts";
import { leafDays } from "#pki/issue.ts";
import { inventoryEntry } from "#pki/inventory.ts";
import { rotateBastionSubCa } from "#pki/rotate.ts";
import { issueSubCa, type Root } from "#pki/sub-ca.ts";
import { allControllers, askController, type Reachable } from "../cluster/all-controllers.ts";
import { caPassphrase } from "../cluster/passphrase.ts";
import { openCluster, type Cluster } from "../open-cluster.ts";
import { addClusterOptions, type ClusterFlags } from "../options.ts";

type Flags = ClusterFlags & { readonly passphraseFile?: string };

/** `kcore rotate sub-ca|certs`. */
export function rotateCommand(): Command {
  const rotate = new Command("rotate").description("New keys and certificates while the cluster runs").addHelpText(
    "after",
    `
Examples:
  kcore rotate sub-ca                        a new sub-CA on every controller and on this machine
  kcore rotate certs                         the operator's certificate, and all nodes' at their next heartbeat`,
  );
  withPassphrase(rotate.command("sub-ca"))
    .description("Give every controller and this machine a new sub-CA, signed by the root; nothing is restarted")
    .addHelpText(
      "after",
      `
Examples:
  kcore rotate sub-ca

Each controller makes its new key itself. What an old sub-CA signed stays valid until it expires or is revoked.
A controller that cannot be reached is listed, and the command exits 1: run it again when it is back.`,
    )
    .action(rotateSubCa);
  withPassphrase(rotate.command("certs"))
    .description(
      "Renew the operator's certificate now, and every node's at its next heartbeat, whatever is left of them",
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore rotate certs

Nodes make new keys themselves; a node that is away renews when it is back. What is done is seen in kcore get nodes
(CERT-EXPIRY). Controllers' certificates are renewed by kcore orchestrate deploy_node, where their keys are.`,
    )
    .action(rotateCerts);
  return rotate;
}

function withPassphrase(command: Command): Command {
  return addClusterOptions(command).option(
    "--passphrase-file <file>",
    "for the CA's keys; else KCORE_CA_PASSPHRASE, else it is asked",
  );
}

async function rotateCerts({ passphraseFile, ...flags }: Flags): Promise<void> {
  const cluster = await openCluster(flags);
  const authority = await openAuthority(cluster.folder, await caPassphrase(passphraseFile));
  const chain = await reissueOperator(cluster.folder, authority, Date.now());
  const entry = inventoryEntry(chain);
  // Known everywhere before it is used.
  if (entry) await cluster.ask((client) => client.call("recordCertificate", entry));
  const file = join(cluster.folder, "kctl.crt");
  await replaceFile(file, chain, { mode: 0o644 });
  process.stdout.write(`operator: new certificate in ${file}, until ${entry?.notAfter.slice(0, 10) ?? "?"}\n`);
  // What is issued from now on ends later than anything issued before.
  const nodesEndingBefore = new Date(Date.now() + leafDays * 86_400_000).toISOString();
  await cluster.ask((client) => client.call("putConfig", { value: { nodesEndingBefore } }, { id: "rotation" }));
  process.stdout.write("nodes: each renews its certificate at its next heartbeat\n");
}

async function rotateSubCa({ passphraseFile, ...flags }: Flags): Promise<void> {
  const cluster = await openCluster(flags);
  const passphrase = await caPassphrase(passphraseFile);
  const root = await openRoot(cluster.folder, passphrase);
  const controllers = await allControllers(cluster);
  const missed: string[] = [];
  for (const [index, one] of controllers.entries()) {
    const { controllerId, dc } = one.controller;
    const where = `${index + 1}/${controllers.length} ${dc} ${one.endpoints[0] ?? controllerId}`;
    try {
      const { serial, notAfter } = await renewSubCa(one, cluster, root);
      process.stdout.write(`${where}: new sub-CA ${serial}, until ${notAfter.slice(0, 10)}\n`);
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      missed.push(`${where}: ${error.problems.map(({ message, code }) => `${message} [${code}]`).join("; ")}`);
    }
  }
  await rotateBastionSubCa(cluster.folder, { root, passphrase, now: Date.now() });
  process.stdout.write(`this machine: new sub-CA in ${cluster.folder}\n`);
  if (missed.length === 0) return;
  for (const line of missed) process.stderr.write(`not done: ${line}\n`);
  throw new KcoreError(
    {
      code: "CLUSTER_UNHEALTHY",
      message: `${missed.length} of ${controllers.length} controllers kept their old sub-CA`,
      hint: "run kcore rotate sub-ca again when they can be reached; or kcore controller remove ID",
    },
    { exitCode: exitCodes.failed },
  );
}

/** The controller makes a key and proves that it holds it, over a nonce of ours; the root signs; it is used at once. */
async function renewSubCa(one: Reachable, cluster: Cluster, root: Root) {
  const { controllerId } = one.controller;
  const nonce = randomBytes(32).toString("base64url");
  const asked = await askController(one, cluster, (client) => client.call("subCaRequest", { nonce }));
  const challenge = subCaChallenge(root.cluster, controllerId, nonce);
  if (asked.controllerId !== controllerId || asked.challenge !== challenge)
    throw new KcoreError({
      code: "PKI_PROOF_INVALID",
      message: `the answer is not that of controller ${controllerId} to our question`,
      hint: "kcore get controllers: does the address belong to this controller?",
    });
  const proof = { challenge, signature: asked.signature };
  const certificate = issueSubCa({ controllerId, spki: asked.spki, proof }, { root, now: Date.now() });
  const entry = inventoryEntry(certificate);
  if (entry) await cluster.ask((client) => client.call("recordCertificate", entry));
  return askController(one, cluster, (client) => client.call("subCaInstall", { certificate }));
}
