import { Command } from "commander";
import { until } from "#base/units.ts";
import type { CertificateView } from "#api/schemas.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { nodeTitle, findNode } from "../node/find-node.ts";
import { requireYes } from "../terminal/ask-operator.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import { addClusterOptions, type ClusterFlags } from "../options.ts";

interface RevokeFlags extends ClusterFlags {
  readonly serial?: string;
  readonly node?: string;
  readonly spki?: string;
  readonly reason?: string;
  readonly yes?: boolean;
}

/** `kcore revoke cert`. */
export function revokeCommand(): Command {
  const revoke = new Command("revoke").description("Revoke certificates");
  addClusterOptions(revoke.command("cert [serial]"))
    .description("Revoke certificates by serial number, by node, or by public key; it cannot be taken back")
    .option(
      "--serial <hex>",
      "the certificate with this serial number, or its beginning, and all others of the same key",
    )
    .option("--node <node>", "all active certificates of this node")
    .option("--spki <sha256>", "all certificates of this public key: SHA-256 in hex")
    .option("--reason <text>", "kept with the revocation")
    .option("--yes", "do not ask")
    .addHelpText(
      "after",
      `
Examples:
  kcore get certificates
  kcore revoke cert 4f2a9b --reason 'key was copied'
  kcore revoke cert --node n1 --yes

The command revokes the public key: within 2 s every controller that replicates refuses all certificates for the key,
also on open connections. The node needs a new key: kcore orchestrate deploy_node NODE.`,
    )
    .action(revokeCert);
  return revoke;
}

async function revokeCert(positional: string | undefined, flags: RevokeFlags): Promise<void> {
  const { serial = positional, node, spki, reason = "", yes = false } = flags;
  if ([serial, node, spki].filter((given) => given !== undefined).length !== 1)
    throw usageError(
      "kcore revoke cert needs to know which: a serial number, --node NODE or --spki SHA256, one of them",
      "kcore get certificates",
    );
  const cluster = await openCluster(flags);
  const { certificates } = await cluster.ask((client) => client.call("listCertificates", {}));
  const chosen = await choose(certificates, cluster, { serial, node, spki });
  for (const { serial: number, role, id, status, current, notAfter } of chosen.certificates)
    process.stderr.write(
      `${number}  ${role} ${id}  ${status}${current ? ", in use" : ""}  expires in ${until(notAfter, Date.now())}\n`,
    );
  await requireYes(`Revoke ${chosen.what} for ever?`, { yes });
  for (const key of chosen.keys) {
    const { serials, result } = await cluster.ask((client) => client.call("revoke", { ...key, reason }));
    const which = serials.length === 0 ? "no certificate known of it" : `certificates ${serials.join(", ")}`;
    process.stdout.write(`${result === "unchanged" ? "revoked already" : "revoked"}: ${which}\n`);
  }
}

async function choose(
  certificates: readonly CertificateView[],
  { ask }: Cluster,
  given: { readonly serial: string | undefined; readonly node: string | undefined; readonly spki: string | undefined },
) {
  if (given.spki !== undefined) {
    const spki = hexOf(given.spki);
    return { what: "this key", certificates: certificates.filter((found) => found.spki === spki), keys: [{ spki }] };
  }
  if (given.serial !== undefined) {
    const serial = hexOf(given.serial);
    const found = certificates.filter((certificate) => certificate.serial.startsWith(serial));
    const [only, second] = found;
    if (!only || second)
      throw new KcoreError({
        code: "CERTIFICATE_UNKNOWN",
        message: only
          ? `“${given.serial}” fits ${found.length} certificates`
          : `no certificate “${given.serial}” was recorded`,
        hint: only
          ? "give more of the serial number"
          : "kcore get certificates; or --spki for a key that was never recorded",
      });
    const same = certificates.filter(({ spki }) => spki === only.spki);
    return { what: "this key", certificates: same, keys: [{ spki: only.spki }] };
  }
  const node = await ask((client) => findNode(client, given.node ?? ""));
  const active = certificates.filter(({ id, status }) => id === node.id && status === "active");
  // The key that the node registered with counts even without a recorded certificate.
  const spkis = [...new Set([...active.map(({ spki }) => spki), ...(node.key === "" ? [] : [node.key])])];
  if (spkis.length === 0)
    throw new KcoreError({
      code: "CERTIFICATE_UNKNOWN",
      message: `${nodeTitle(node)} has no active certificate`,
      hint: `kcore get certificates --node ${node.id}`,
    });
  const keys = spkis.map((spki) => ({ spki }));
  return { what: `all certificates of ${nodeTitle(node)}`, certificates: active, keys };
}

/** Hex as OpenSSL, browsers and kcore write it: with or without colons and prefix. */
function hexOf(text: string): string {
  const hex = text
    .replace(/^sha256:|^0x/i, "")
    .replaceAll(":", "")
    .toLowerCase();
  if (/^[0-9a-f]{4,}$/.test(hex)) return hex;
  throw usageError(`“${text}” is no number in hex`, "kcore get certificates -o wide");
}
