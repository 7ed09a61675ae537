import { KcoreError } from "#errors/problem.ts";
import { encryptedBytes } from "#engine/step/encrypted-value.ts";
import { fingerprintOf, headerOf } from "./header.ts";
import { identityFile, readIdentities } from "./identities.ts";

/** Opens sealed values with this user's identities. */
export interface Opener {
  /** The bytes of a value; the same text is decrypted only once. @throws KcoreError SECRET_IDENTITY, SECRET_UNREADABLE */
  open(text: string): Promise<Uint8Array>;
}

export interface OpenerOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Asks for the passphrase of an identity; undefined: no answer. */
  readonly ask: (text: string) => Promise<string | undefined>;
}

/** An opener that reads the identities when it opens the first value. */
export function openerOf({ env, home, ask }: OpenerOptions): Opener {
  const file = identityFile(env, home);
  const opened = new Map<string, Promise<Uint8Array>>();
  let identities: Promise<readonly string[]> | undefined;
  return {
    open: (text) => {
      const known = opened.get(text) ?? openOne(text, file, () => (identities ??= readIdentities(file, ask)));
      opened.set(text, known);
      return known;
    },
  };
}

async function openOne(
  text: string,
  file: string,
  identitiesOf: () => Promise<readonly string[]>,
): Promise<Uint8Array> {
  const { fingerprints } = headerOf(text);
  const identities = await identitiesOf();
  const { open, recipientOf } = await import("./age.ts");
  const value = await open(encryptedBytes(text) as Uint8Array, identities);
  if (value !== undefined) return value;
  const own = await Promise.all(identities.map(recipientOf));
  const isMeant = own.some((recipient) => recipient !== undefined && fingerprints.includes(fingerprintOf(recipient)));
  // The message depends only on the public header and this user's identities, so it reveals nothing about the value.
  throw new KcoreError({
    code: "SECRET_UNREADABLE",
    message: isMeant
      ? "the sealed value was changed, or is not whole"
      : `the sealed value is not for the identities in ${file}`,
    hint: isMeant
      ? "take it from git as it was, or give it anew: kcore secrets set FILE PATH"
      : "a recipient who can open it adds you: kcore secrets recipients add NAME RECIPIENT, and then kcore secrets rotate",
  });
}
