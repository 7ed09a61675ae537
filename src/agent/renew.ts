import { X509Certificate } from "node:crypto";
import type { ApiClient, Credentials } from "#api/client.ts";
import type { CredentialFiles, LoadedCredentials } from "#api/credentials.ts";
import { KcoreError } from "#errors/problem.ts";
import { generateKey, proveKey, publicDer, renewalChallenge } from "#pki/keys.ts";
import { refusalOfNext } from "#pki/expectation.ts";
import { discardNext, keepNextKey, swapIn } from "./certificate-files.ts";

export interface RenewalOptions {
  readonly files: CredentialFiles;
  readonly present: LoadedCredentials;
  readonly clock: () => number;
  /** A client of the controller that renews, with the present certificate. */
  readonly client: ApiClient;
  /** Proves the new credentials to that controller; throws if it refuses them. */
  readonly prove: (fresh: Credentials) => Promise<void>;
}

const dayMs = 86_400_000;

/** Whether so few days are left. */
export function isRenewalDue(
  { notAfter }: Pick<LoadedCredentials, "notAfter">,
  daysLeft: number,
  now: number,
): boolean {
  return notAfter.getTime() - now <= daysLeft * dayMs;
}

/**
 * Gets a certificate for a new key, which is made here and never leaves, and swaps both in once they are proved. The
 * certificate must have the old one's identity, lead to our root, fit the key, and be accepted on a new connection.
 * After a failure the old ones stay in use and on the disk. Resolves with the new one's end.
 * @throws KcoreError the refusal of the controller; RENEWAL_FAILED
 */
export async function renewCertificate({ files, present, clock, client, prove }: RenewalOptions): Promise<Date> {
  const { identity } = present;
  const { nonce, challenge } = await client.call("renewChallenge", { nodeId: identity.id });
  // A controller must not make the node sign a text of its choice: the text is ours, only the nonce is the
  // controller's.
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
    await discardNext(files).catch(() => undefined);
    throw error;
  }
}

function failed(message: string): KcoreError {
  return new KcoreError({
    code: "RENEWAL_FAILED",
    message,
    hint: "the present certificate stays in use, and it is tried again",
  });
}
