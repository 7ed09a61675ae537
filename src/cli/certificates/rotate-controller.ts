import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { poll } from "#base/wait.ts";
import { KcoreError } from "#errors/problem.ts";
import { makeFolder } from "#base/folder.ts";
import { firstCertificate } from "#pki/chain.ts";
import { controllerChallenge, keyFingerprint, publicDer } from "#pki/keys.ts";
import { hostsOf, renewalReason } from "#pki/expectation.ts";
import { placeFile, replaceFile } from "#base/file.ts";
import { inventoryEntry, issuedFile, nextIssuedFile } from "#pki/issued.ts";
import { issueLeaf, type Authority } from "#pki/issue.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import { askController, askPinned, type KnownController } from "../controller/all-controllers.ts";

/** Milliseconds for the other controllers to learn of a new key, and for each request to one of them. */
const spreadMs = 5_000;

/**
 * Gives a running controller a new certificate, for a key that the controller makes itself. Registers both keys, installs
 * the new one, then revokes the old one. All other controllers must know the new key first: a controller without it
 * would refuse this one, and never learn of the key. A repetition repairs an interrupted rotation.
 * @throws KcoreError when this or another controller cannot be reached, or refuses
 */
export async function rotateController(
  one: KnownController,
  all: readonly KnownController[],
  { cluster, authority }: { readonly cluster: Cluster; readonly authority: Authority },
): Promise<{ readonly serial: string; readonly notAfter: string }> {
  const { controllerId, address, dc } = one.controller;
  const others = all.filter((other) => other !== one);
  const limit = { timeoutMs: spreadMs };
  await Promise.all(others.map((other) => askController(other, cluster, (client) => client.call("ready", {}), limit)));
  const nonce = randomBytes(32).toString("base64url");
  const answer = await askPinned(one, cluster, (client) => client.call("certificateRequest", { nonce }));
  const challenge = controllerChallenge(authority.cluster, controllerId, nonce);
  if (answer.controllerId !== controllerId || answer.challenge !== challenge) throw notFromController(controllerId);
  const present = readPresent(answer.certificate, controllerId, authority);
  const proof = { challenge, signature: answer.signature };
  const request = { role: "controller", id: controllerId, ...present.names, spki: answer.spki, proof } as const;
  const { chain } = issueLeaf(request, { authority, now: Date.now() });
  const entry = inventoryEntry(chain);
  if (!entry) throw notFromController(controllerId);

  const register = async (keys: { readonly spki: string; readonly next?: string }): Promise<void> => {
    const body = { ...keys, dc, ...(address === "" ? {} : { address }) };
    await askController(one, cluster, (client) => client.call("registerController", body, { id: controllerId }));
  };
  await askController(one, cluster, (client) => client.call("recordCertificate", entry));
  await register({ spki: present.key, next: entry.spki });
  const heard = await Promise.all(others.map((other) => hasLearned(other, { controllerId, key: entry.spki, cluster })));
  const unaware = others[heard.indexOf(false)];
  if (unaware) {
    await register({ spki: present.key });
    throw notLearned(unaware, controllerId);
  }
  const issued = issuedFile(cluster.folder, controllerId, "controller");
  const next = nextIssuedFile(cluster.folder, controllerId);
  await makeFolder(dirname(next), { mode: 0o700 });
  await replaceFile(next, chain, { mode: 0o644 });
  const installed = await askController(one, cluster, (client) =>
    client.call("certificateInstall", { certificate: chain }),
  );
  await register({ spki: entry.spki });
  // Includes an even older key, which an interrupted rotation may have left.
  const former = new Set([present.key, one.controller.key].filter((key) => key !== "" && key !== entry.spki));
  for (const spki of former)
    await askController(one, cluster, (client) => client.call("revoke", { spki, reason: "rotated" }));
  await placeFile(next, issued);
  return installed;
}

/** The key and names of a controller's present certificate. @throws KcoreError PKI_PROOF_INVALID unless this cluster issued it */
export function readPresent(
  pem: string,
  controllerId: string,
  { cluster, rootPem }: Pick<Authority, "cluster" | "rootPem">,
) {
  const certificate = firstCertificate(pem);
  const spki = publicDer(certificate.publicKey);
  const hosts = hostsOf(certificate);
  const expected = {
    spki: spki.toString("base64"),
    hosts,
    identity: { cluster, role: "controller", id: controllerId },
    rootPem,
    // The old certificate must be right in every other way; its near end is why it is replaced.
    now: certificate.validFromDate.getTime(),
  } as const;
  const reason = renewalReason(pem, expected);
  // A sub-CA near its end issues certificates of a few days.
  if (reason !== undefined && !reason.startsWith("it expires in")) throw notFromController(controllerId);
  const [host = "", ...addresses] = hosts;
  return { key: keyFingerprint(spki), names: { host, addresses } };
}

/** Waits until a controller knows the new key of another; false after {@link spreadMs}. @throws KcoreError when `other` cannot be asked */
async function hasLearned(
  other: KnownController,
  { controllerId, key, cluster }: { readonly controllerId: string; readonly key: string; readonly cluster: Cluster },
): Promise<boolean> {
  const knowsKey = async (): Promise<boolean> => {
    const { controllers } = await askController(other, cluster, (client) => client.call("listControllers", {}), {
      timeoutMs: spreadMs,
    });
    return controllers.some((one) => one.controllerId === controllerId && one.nextKey === key);
  };
  return (await poll(knowsKey, { everyMs: 50, limitMs: spreadMs })) ?? false;
}

function notLearned({ controller, endpoints }: KnownController, of: string): KcoreError {
  return new KcoreError({
    code: "CLUSTER_UNHEALTHY",
    message: `controller ${endpoints[0] ?? controller.controllerId} did not hear of the new key of ${of} within ${spreadMs / 1000} s`,
    hint: "kcore get replication-status",
  });
}

function notFromController(controllerId: string): KcoreError {
  return new KcoreError({
    code: "PKI_PROOF_INVALID",
    message: `the answer is not that of controller ${controllerId} to our question`,
    hint: "kcore get controllers: does the address belong to this controller?",
  });
}
