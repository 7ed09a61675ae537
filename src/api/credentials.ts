import { createPrivateKey, X509Certificate } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { identityOf, type MemberIdentity, type MemberRole } from "#pki/identity.ts";
import { readText, fileVersion } from "#base/file.ts";
import type { Credentials } from "./client.ts";

export interface CredentialFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export interface LoadedCredentials extends Credentials {
  readonly identity: MemberIdentity;
  readonly notAfter: Date;
  /** Another text whenever one of the files has changed (credentialsVersion). */
  readonly version: string;
}

/**
 * Reads a daemon's certificate, key and CA, and checks that key and certificate belong together and name the expected role.
 * @throws KcoreError FILE_UNREADABLE, CONFIG_INVALID, PKI_IDENTITY
 */
export async function loadCredentials(files: CredentialFiles, role: MemberRole): Promise<LoadedCredentials> {
  // The version comes first, so that a file that changes during this reading is read again next time.
  const version = await credentialsVersion(files);
  const [ca, cert, key] = await Promise.all([
    readText(files.caFile),
    readText(files.certFile),
    readText(files.keyFile),
  ]);
  const certificate = parse(cert, files.certFile);
  if (!fits(certificate, key)) {
    throw new KcoreError({
      code: "CONFIG_INVALID",
      message: `${files.keyFile} is not the key of ${files.certFile}`,
      hint: "deploy the node again: a certificate for its present key is issued",
    });
  }
  const identity = identityOf(certificate, "client");
  if (identity.role !== role) {
    throw new KcoreError({
      code: "CONFIG_INVALID",
      message: `${files.certFile} is the certificate of a ${identity.role}, not of a ${role}`,
    });
  }
  return { ca, cert, key, identity, notAfter: certificate.validToDate, version };
}

/** A text that changes when one of the files is replaced or written; a missing file counts as `missing`. */
export async function credentialsVersion({ caFile, certFile, keyFile }: CredentialFiles): Promise<string> {
  return (await Promise.all([caFile, certFile, keyFile].map(fileVersion))).join(" ");
}

function parse(pem: string, file: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new KcoreError({ code: "CONFIG_INVALID", message: `${file} holds no certificate` }, { cause: error });
  }
}

function fits(certificate: X509Certificate, key: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}
