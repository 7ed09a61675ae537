import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Command } from "commander";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { subCaChallenge } from "#pki/keys.ts";
import { openRoot, reissueOperator, replaceOperatorKey, reviveOperator } from "#pki/cluster.ts";
import { firstCertificate } from "#pki/chain.ts";
import { replaceFile } from "#base/file.ts";
import { endOfLeaf } from "#pki/issue.ts";
import { inventoryEntry } from "#pki/issued.ts";
import { openIssuer, rotateBastionSubCa } from "#pki/rotate-bastion.ts";
import { issueSubCa, type Root } from "#pki/sub-ca.ts";
import { allControllers, askController, askPinned, type KnownController } from "../controller/all-controllers.ts";
import { readPresent, rotateController } from "./rotate-controller.ts";
import { withCaPassphrase } from "../cluster/ca-passphrase.ts";
import { checkClock, openCluster, type Cluster } from "../cluster/open-cluster.ts";
import { addClusterOptions, caPassphrase, type ClusterFlags } from "../options.ts";

type Flags = ClusterFlags & { readonly passphraseFile?: string };

/** `kcore rotate sub-ca|certs|operator`. */
export function rotateCommand(): Command {
  const rotate = new Command("rotate").description("Renew keys and certificates while the cluster runs").addHelpText(
    "after",
    `
Examples:
  kcore rotate sub-ca                        a new sub-CA on every controller and on this machine
  kcore rotate certs                         the operator's certificate, all controllers', and all nodes'
  kcore rotate operator                      a new key for the operator`,
  );
  withPassphrase(rotate.command("sub-ca"))
    .description("Give every controller and this machine a new sub-CA, signed by the root; nothing is restarted")
    .addHelpText(
      "after",
      `
Examples:
  kcore rotate sub-ca

Each controller makes its new key itself. Certificates of an old sub-CA stay valid until it expires or is revoked.
A controller that cannot be reached is listed, and the command exits 1: run it again when it is back.`,
    )
    .action(rotateSubCa);
  withPassphrase(rotate.command("certs"))
    .description("Renew the operator's certificate and every controller's now, and every node's soon")
    .addHelpText(
      "after",
      `
Examples:
  kcore rotate certs

Certificates are renewed however long they are still valid; nothing is restarted. Controllers and nodes make new keys themselves;
a controller's old key is revoked as soon as the new one is in use. Each controller asks 20 nodes a second to renew, at their
heartbeats: a thousand nodes take a minute. A node that is away renews when it is back. While a
controller cannot be reached, no other controller gets a new key, since the absent one would not learn of that key. Controllers
without a new key are listed, and the command exits 1: run it again when all controllers can be reached, or remove the lost one.
See the progress in kcore get nodes and kcore get controllers (CERT-EXPIRY).`,
    )
    .action(rotateCerts);
  withPassphrase(rotate.command("operator"))
    .description("Give the operator a new key, certified by the root; needs no controller")
    .addHelpText(
      "after",
      `
Examples:
  kcore rotate operator

For a key that was copied, or that was revoked: by mistake, or by a controller in wrong hands. Every controller accepts
what the root itself has certified, whatever stands in its records. If a controller is in wrong hands, remove it next, asking
another one (kcore -s HOST controller remove ID); then kcore rotate certs, which records the new key. The former key
still works unless it was revoked; the command that revokes it is printed.`,
    )
    .action(rotateOperator);
  return rotate;
}

function withPassphrase(command: Command): Command {
  return addClusterOptions(command).option(...caPassphrase);
}

async function rotateCerts({ passphraseFile, ...flags }: Flags): Promise<void> {
  const former = await openCluster(flags);
  const { folder } = former;
  await checkClock(former);
  const { authority, passphrase } = await withCaPassphrase(passphraseFile, async (passphrase) => ({
    authority: await openIssuer(folder, passphrase),
    passphrase,
  }));
  // Controllers refuse an expired certificate, and accept a renewed one of the same key.
  await reviveOperator(folder, { authority, passphrase, now: Date.now() });
  const cluster = await openCluster(flags);
  const chain = await reissueOperator(cluster.folder, authority, Date.now());
  const entry = inventoryEntry(chain);
  // The cluster must know the certificate before the operator uses it.
  if (entry) await cluster.ask((client) => client.call("recordCertificate", entry));
  const file = join(cluster.folder, "kctl.crt");
  await replaceFile(file, chain, { mode: 0o644 });
  process.stdout.write(`operator: new certificate in ${file}, until ${entry?.notAfter.slice(0, 10) ?? "?"}\n`);
  const missed = await rotateEach(cluster, "certificate", (one, all) =>
    rotateController(one, all, { cluster, authority }),
  );
  // Certificates issued from now on do not end before that time: no node renews twice for one request.
  const nodesEndingBefore = endOfLeaf(Date.now()).toISOString();
  await cluster.ask((client) => client.call("putConfig", { value: { nodesEndingBefore } }, { id: "rotation" }));
  process.stdout.write("nodes: each renews its certificate at one of its next heartbeats\n");
  refuseMissed(missed, "kcore rotate certs", "certificate");
}

async function rotateOperator({ passphraseFile, ...flags }: Flags): Promise<void> {
  const former = await openCluster(flags);
  const { folder } = former;
  await checkClock(former);
  const root = await withCaPassphrase(passphraseFile, (passphrase) => openRoot(folder, passphrase));
  const { certificate, formerKey } = await replaceOperatorKey(folder, root, Date.now());
  const until = firstCertificate(certificate).validToDate.toISOString().slice(0, 10);
  process.stdout.write(`operator: new key and certificate in ${join(folder, "kctl.crt")}, until ${until}\n`);
  const entry = inventoryEntry(certificate);
  // The cluster is opened again with the new key, as the former key may be revoked. Controllers accept an unrecorded
  // key if the root itself certified it.
  const again = await openCluster(flags);
  if (entry)
    await again
      .ask((client) => client.call("recordCertificate", entry))
      .catch((error: unknown) => {
        if (!(error instanceof KcoreError)) throw error;
        process.stderr.write(
          "no controller has recorded the new key yet: kcore rotate certs does, when one can be reached\n",
        );
      });
  process.stdout.write(`to end the former key: kcore revoke cert --spki ${formerKey}\n`);
}

async function rotateSubCa({ passphraseFile, ...flags }: Flags): Promise<void> {
  const cluster = await openCluster(flags);
  await checkClock(cluster);
  const { root, passphrase } = await withCaPassphrase(passphraseFile, async (passphrase) => ({
    root: await openRoot(cluster.folder, passphrase),
    passphrase,
  }));
  // The bastion's own sub-CA comes first, as it needs no controller: this revives a cluster whose sub-CAs have all expired.
  await rotateBastionSubCa(cluster.folder, { root, passphrase, now: Date.now() });
  process.stdout.write(`this machine: new sub-CA in ${cluster.folder}\n`);
  const missed = await rotateEach(cluster, "sub-CA", (one) => renewSubCa(one, cluster, root));
  refuseMissed(missed, "kcore rotate sub-ca", "sub-CA");
}

/** Rotates one controller after the other; returns a line for each failed controller. */
async function rotateEach(
  cluster: Cluster,
  what: string,
  rotate: (
    one: KnownController,
    all: readonly KnownController[],
  ) => Promise<{ readonly serial: string; readonly notAfter: string }>,
): Promise<readonly string[]> {
  const controllers = await allControllers(cluster);
  const missed: string[] = [];
  for (const [index, one] of controllers.entries()) {
    const { controllerId, dc } = one.controller;
    const where = `${index + 1}/${controllers.length} ${dc} ${one.endpoints[0] ?? controllerId}`;
    try {
      const { serial, notAfter } = await rotate(one, controllers);
      process.stdout.write(`${where}: new ${what} ${serial}, until ${notAfter.slice(0, 10)}\n`);
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      missed.push(`${where}: ${error.problems.map(({ message, code }) => `${message} [${code}]`).join("; ")}`);
    }
  }
  return missed;
}

/** Reports the lines of failed controllers on stderr. @throws KcoreError CLUSTER_UNHEALTHY when there is one */
function refuseMissed(missed: readonly string[], command: string, what: string): void {
  if (missed.length === 0) return;
  for (const line of missed) process.stderr.write(`not done: ${line}\n`);
  throw new KcoreError(
    {
      code: "CLUSTER_UNHEALTHY",
      message: `${missed.length} ${missed.length === 1 ? "controller" : "controllers"} kept the old ${what}`,
      hint: `run ${command} again when they can be reached; or kcore controller remove ID`,
    },
    { exitCode: exitCodes.failed },
  );
}

/**
 * The controller makes a key and signs the bastion's nonce with that key; the root signs the sub-CA, and the controller
 * uses it at once.
 */
async function renewSubCa(one: KnownController, cluster: Cluster, root: Root) {
  const { controllerId } = one.controller;
  const nonce = randomBytes(32).toString("base64url");
  const answer = await askPinned(one, cluster, (client) => client.call("subCaRequest", { nonce }));
  const challenge = subCaChallenge(root.cluster, controllerId, nonce);
  if (answer.controllerId !== controllerId || answer.challenge !== challenge)
    throw new KcoreError({
      code: "PKI_PROOF_INVALID",
      message: `the answer is not that of controller ${controllerId} to our question`,
      hint: "kcore get controllers: does the address belong to this controller?",
    });
  const proof = { challenge, signature: answer.signature };
  // The controller renews its certificate under the names of the present one, which the bastion chose (ADR 0516).
  const { certificate: present } = await askPinned(one, cluster, (client) =>
    client.call("certificateRequest", { nonce }),
  );
  const { host, addresses } = readPresent(present, controllerId, root).names;
  const hosts = [host, ...addresses];
  const certificate = issueSubCa({ controllerId, spki: answer.spki, proof, hosts }, { root, now: Date.now() });
  const entry = inventoryEntry(certificate);
  if (entry) await cluster.ask((client) => client.call("recordCertificate", entry));
  return askController(one, cluster, (client) => client.call("subCaInstall", { certificate }));
}
