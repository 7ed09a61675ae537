import { createHash, X509Certificate } from "node:crypto";
import { askOnce, type Controllers } from "#api/ask.ts";
import type { ApiClient, Credentials } from "#api/client.ts";
import type { CredentialFiles, LoadedCredentials } from "#api/credentials.ts";
import { formatEndpoint } from "#api/endpoint.ts";
import { describeError, type Log } from "#api/log.ts";
import { createBackoff } from "#base/backoff.ts";
import { KcoreError } from "#errors/problem.ts";
import { refusalOfNext } from "#pki/expectation.ts";
import { generateKey, proveKey, publicDer, renewalChallenge } from "#pki/keys.ts";
import type { AgentConfig } from "./agent-config.ts";
import { finishSwap, keepNextKey, swapIn, type OwnCredentials } from "./certificate-files.ts";

/** Days left at which a failed renewal is reported: an operator still has a week to repair it. */
const alarmDays = 7;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const firstRetryMs = 60_000;

export type Renewer = ReturnType<typeof createRenewer>;

/** Renews the node's certificate before it ends. */
export function createRenewer({
  config,
  controllers,
  credentials,
  clock,
  random,
  log,
  nodeId,
}: {
  readonly config: Pick<AgentConfig, "renewal" | "tls">;
  readonly controllers: Controllers;
  readonly credentials: OwnCredentials;
  readonly clock: () => number;
  readonly random: () => number;
  readonly log: Log;
  readonly nodeId: string;
}) {
  const backoff = createBackoff({ base: firstRetryMs, cap: hourMs, random });
  let notBefore = -Infinity;
  let failure: string | undefined;
  // Each request is fulfilled once: if clocks differ, or a sub-CA ends early, the new certificate may end before the requested time, too.
  let fulfilled: string | undefined;
  return {
    /**
     * Renews the certificate if it is due, or ends before `endingBefore`, as an operator requested; after a failure only
     * when the backoff is over. Returns whether the files are new. Failures are logged.
     */
    async renewIfDue(endingBefore?: string): Promise<boolean> {
      const present = credentials.present();
      const now = clock();
      // A clock that was set back prolongs the pause to an hour at most.
      const isWaiting = now < notBefore && notBefore - now <= hourMs;
      const isRequested =
        endingBefore !== undefined &&
        endingBefore !== fulfilled &&
        present.notAfter.getTime() < Date.parse(endingBefore);
      if (isWaiting || !(isRequested || isRenewalDue(present, config.renewal.daysLeft, now))) return false;
      try {
        log.info("the certificate is being renewed", { expires: present.notAfter.toISOString() });
        const files = config.tls;
        const expires = await controllers.ask((client) => {
          // Only reads: if the node registered with the new key now, a crash before the swap would leave it with a
          // key that no controller accepts.
          const prove = async (fresh: Credentials): Promise<void> => {
            const thisController = { endpoints: [formatEndpoint(client.endpoint)], credentials: fresh, clock };
            await askOnce(thisController, (newClient) => newClient.call("getNode", {}, { id: nodeId }));
          };
          return renewCertificate({ files, present, clock, client, prove });
        });
        backoff.reset();
        failure = undefined;
        fulfilled = endingBefore;
        log.info("the certificate was renewed", { expires: expires.toISOString() });
        return true;
      } catch (error) {
        const wait = backoff.next();
        notBefore = now + wait;
        failure = error instanceof Error ? error.message : String(error);
        log.warn("the certificate was not renewed", { retryInMs: Math.round(wait), ...describeError(error) });
        return false;
      }
    },
    /** The reason why a renewal is overdue; undefined while more than 7 days are left or nothing failed. */
    problem(): string | undefined {
      const leftMs = credentials.present().notAfter.getTime() - clock();
      if (failure === undefined || leftMs > alarmDays * dayMs) return undefined;
      return `the node's certificate ends in ${Math.max(0, Math.floor(leftMs / dayMs))} days and is not renewed: ${failure}`;
    },
  };
}

/** The certificate to renew, and the controller that renews it. */
export interface RenewalOptions {
  readonly files: CredentialFiles;
  readonly present: LoadedCredentials;
  readonly clock: () => number;
  /** A client of the controller that renews, with the present certificate. */
  readonly client: ApiClient;
  /** Proves the new credentials to that controller; throws if it refuses them. */
  readonly prove: (fresh: Credentials) => Promise<void>;
}

/**
 * Whether at most `daysLeft` days are left, and a part of a day that a hash over the certificate chooses: nodes that were deployed together
 * must not renew together. Never more than 89.5 days, or a new certificate of 90 days would be due at once.
 */
export function isRenewalDue(
  { cert, notAfter }: Pick<LoadedCredentials, "cert" | "notAfter">,
  daysLeft: number,
  now: number,
): boolean {
  const part = createHash("sha256").update(cert).digest().readUInt32BE() / 2 ** 32;
  return notAfter.getTime() - now <= Math.min(daysLeft + part, 89.5) * dayMs;
}

/**
 * Gets a certificate for a new key, which never leaves this machine, and swaps both in once the controller accepts them.
 * The certificate must have the old identity, lead to our root, fit the key, and be accepted on a new connection.
 * After a failure the old files stay, unless the new key is in place already. Resolves with the new certificate's end.
 * @throws KcoreError the refusal of the controller; RENEWAL_FAILED
 */
export async function renewCertificate({ files, present, clock, client, prove }: RenewalOptions): Promise<Date> {
  const { identity } = present;
  const { nonce, challenge } = await client.call("renewChallenge", { nodeId: identity.id });
  // A controller must not make the node sign a text of the controller's choice: it chooses the nonce alone.
  if (challenge !== renewalChallenge(identity.cluster, identity.id, nonce)) {
    throw failed("the controller's challenge is not one for this node's renewal");
  }
  const key = generateKey();
  const keyPem = key.export({ type: "pkcs8", format: "pem" }) as string;
  await keepNextKey(files, keyPem);
  try {
    const spki = publicDer(key).toString("base64");
    const signature = proveKey(key, challenge);
    const { certificate } = await client.call("renew", { nodeId: identity.id, nonce, spki, signature });
    const reason = refusalOfNext(certificate, { spki, present, now: clock() });
    if (reason !== undefined) throw failed(`the new certificate cannot be used: ${reason}`);
    await prove({ ca: present.ca, cert: certificate, key: keyPem });
    await swapIn(files, certificate);
    return new X509Certificate(certificate).validToDate;
  } catch (error) {
    await finishSwap(files).catch(() => undefined);
    throw error;
  }
}

function failed(message: string): KcoreError {
  return new KcoreError({
    code: "RENEWAL_FAILED",
    message,
    hint: "the present certificate stays in use, and the agent tries again",
  });
}
