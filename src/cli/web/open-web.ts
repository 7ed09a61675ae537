import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { formatEndpoint } from "#api/endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate, knowBastionCas } from "#pki/chain.ts";
import { issueCertificate } from "#pki/certificate.ts";
import { identityOf } from "#pki/identity.ts";
import { backdateMs, endOfLeaf, certificateNames } from "#pki/issue.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { readText } from "#base/file.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { tokenGuard } from "#web/guard.ts";
import { serveWeb, type WebOptions, type WebServer } from "#web/serve-web.ts";
import { withCaPassphrase } from "../cluster/ca-passphrase.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { operatorGuard, type KeyAnswers } from "./operator-guard.ts";

type Common = Pick<WebOptions, "sources" | "host" | "port"> & { readonly frame: Omit<WebOptions["frame"], "root"> };

export interface OpenWeb {
  readonly server: WebServer;
  readonly url: string;
  /** Ends the work beside the server. */
  readonly close: () => void;
}

/** Serves this machine alone, with a token. `isGiven`: no other port will do. @throws KcoreError WEB_PORT_TAKEN */
export async function openHere({
  isGiven = false,
  ...given
}: Common & { readonly isGiven?: boolean }): Promise<OpenWeb> {
  const { token, root, guard } = tokenGuard();
  const common = { ...given, frame: { ...given.frame, root } };
  const server = await serveWeb({ ...common, guard }).catch((error: unknown) => {
    const isTaken = error instanceof KcoreError && error.problems.some(({ code }) => code === "WEB_PORT_TAKEN");
    if (!isTaken || isGiven) throw error;
    return serveWeb({ ...common, port: 0, guard });
  });
  return { server, url: `http://${common.host}:${server.port}/?token=${token}`, close: () => undefined };
}

export interface WideOptions extends Common {
  readonly names: readonly string[];
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly passphraseFile?: string;
}

/** Milliseconds between two requests to the cluster for the revoked keys. */
const askEvery = 60_000;

/** Serves other machines, over TLS, to operators' certificates alone. */
export async function openWide(options: WideOptions, cluster: Cluster | undefined): Promise<OpenWeb> {
  if (!cluster) throw new Error("without a cluster there are no operators");
  const { host, names, sources, frame } = options;
  const [ca, chain] = (await Promise.all(
    ["ca.crt", "kctl.crt"].map((name) => readText(join(cluster.folder, name))),
  )) as [string, string];
  const operator = firstCertificate(chain);
  let told: KeyAnswers = {};
  const ask = async (): Promise<void> => {
    try {
      const { certificates } = await cluster.ask((client) => client.call("listCertificates", {}));
      told = { revoked: new Set(certificates.filter(({ status }) => status === "revoked").map(({ spki }) => spki)) };
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      // While no controller is reachable, the last answer counts.
      if (error.problems.some(({ code }) => code === "API_UNREACHABLE")) return;
      told = { refusal: error.message };
    }
  };
  await ask();
  const timer = setInterval(() => void ask(), askEvery).unref();
  const guard = operatorGuard({
    cluster: identityOf(operator, "client").cluster,
    bastion: knowBastionCas(ca, chain),
    own: keyFingerprint(publicDer(operator.publicKey)),
    told: () => told,
  });
  const tls = { ca, ...(await certificateFor(options, cluster.folder)) };
  const server = await serveWeb({
    host,
    port: options.port,
    tls,
    guard: () => guard,
    sources,
    frame: { ...frame, root: "" },
  });
  const [name = host] = names;
  return {
    server,
    url: `https://${formatEndpoint({ host: name, port: server.port })}/`,
    close: () => clearInterval(timer),
  };
}

/** The given certificate, or one that the cluster's CA signs now, for a key that never leaves this process. */
async function certificateFor(
  { names, tlsCert, tlsKey, passphraseFile }: WideOptions,
  folder: string,
): Promise<{ readonly cert: string; readonly key: string }> {
  if (tlsCert !== undefined && tlsKey !== undefined)
    return { cert: await readText(tlsCert), key: await readText(tlsKey) };
  const [host = "", ...addresses] = names.filter((name) => name !== "0.0.0.0" && name !== "::");
  const hosts = certificateNames({ host, addresses });
  const authority = await withCaPassphrase(passphraseFile, (passphrase) => openIssuer(folder, passphrase));
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const now = Date.now();
  // The certificate holds no identity, so it is useless in the cluster.
  const cert = issueCertificate({
    commonName: "kcore-web",
    publicKey,
    issuer: authority.certificate,
    signer: authority.key,
    notBefore: new Date(now - backdateMs),
    notAfter: new Date(Math.min(endOfLeaf(now).getTime(), authority.certificate.validToDate.getTime())),
    usages: ["server"],
    hosts,
  });
  return { cert: cert + authority.certificatePem, key: privateKey.export({ type: "pkcs8", format: "pem" }) as string };
}
