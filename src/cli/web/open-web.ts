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

type BaseOptions = Pick<WebOptions, "sources" | "host" | "port"> & {
  readonly frame: Omit<WebOptions["frame"], "root">;
};

export interface OpenWeb {
  readonly server: WebServer;
  readonly url: string;
  /** Stops the timer beside the server; the server has its own `close`. */
  readonly close: () => void;
}

/** Serves this machine alone, to browsers with a token. `isGiven`: no other port is taken instead. @throws KcoreError WEB_PORT_TAKEN */
export async function openOnLoopback({
  isGiven = false,
  ...given
}: BaseOptions & { readonly isGiven?: boolean }): Promise<OpenWeb> {
  const { token, root, guard } = tokenGuard();
  const common = { ...given, frame: { ...given.frame, root } };
  const server = await serveWeb({ ...common, guard }).catch((error: unknown) => {
    const isTaken = error instanceof KcoreError && error.problems.some(({ code }) => code === "WEB_PORT_TAKEN");
    if (!isTaken || isGiven) throw error;
    return serveWeb({ ...common, port: 0, guard });
  });
  return { server, url: `http://${common.host}:${server.port}/?token=${token}`, close: () => undefined };
}

export interface TlsOptions extends BaseOptions {
  readonly names: readonly string[];
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly passphraseFile?: string;
}

/** Milliseconds between two requests for the revoked keys. */
const askMs = 60_000;

/** Serves other machines over TLS, to browsers with an operator's certificate. */
export async function openWithTls(options: TlsOptions, cluster: Cluster | undefined): Promise<OpenWeb> {
  if (!cluster) throw new Error("without a cluster there are no operators");
  const { host, names, sources, frame } = options;
  const [ca, chain] = (await Promise.all(
    ["ca.crt", "kctl.crt"].map((name) => readText(join(cluster.folder, name))),
  )) as [string, string];
  const operator = firstCertificate(chain);
  let keyAnswers: KeyAnswers = {};
  const readRevokedKeys = async (): Promise<void> => {
    try {
      const { certificates } = await cluster.ask((client) => client.call("listCertificates", {}));
      keyAnswers = {
        revoked: new Set(certificates.filter(({ status }) => status === "revoked").map(({ spki }) => spki)),
      };
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      // While no controller is reachable, the last answer counts.
      if (error.problems.some(({ code }) => code === "API_UNREACHABLE")) return;
      keyAnswers = { refusal: error.message };
    }
  };
  await readRevokedKeys();
  const timer = setInterval(() => void readRevokedKeys(), askMs).unref();
  const guard = operatorGuard({
    cluster: identityOf(operator, "client").cluster,
    bastion: knowBastionCas(ca, chain),
    own: keyFingerprint(publicDer(operator.publicKey)),
    answers: () => keyAnswers,
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

/** The given certificate and key; else a new certificate of the cluster's CA, with a key that stays in this process. */
async function certificateFor(
  { names, tlsCert, tlsKey, passphraseFile }: TlsOptions,
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
