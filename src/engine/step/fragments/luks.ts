import { mappingName } from "../disk-names.ts";
import { sh, type Sh } from "../sh.ts";

/** The folder of keys on the node, for root alone; the name of each file begins with its container's UUID. */
export const luksFolder = "/etc/kcore/luks";

/** The file that opens the container at boot: 64 random bytes. */
export function keyFileOf(uuid: string): string {
  return `${luksFolder}/${uuid}.key`;
}

/**
 * An empty file that marks a container which the machine's TPM opens. Each container that kcore made has this file or a
 * key file.
 */
export function tpmMarkOf(uuid: string): string {
  return `${luksFolder}/${uuid}.tpm2`;
}

/**
 * A file of two words: the SHA-256 of the public key that the container's recovery key is sealed for, and the container's
 * word of the fact `sealed` (luks.escrowed).
 */
export function recoveryFileOf(uuid: string): string {
  return `${luksFolder}/${uuid}.recovery`;
}

/**
 * sh condition: the key file alone opens the container on `$device`. cryptsetup since 2.4 asks a TPM first, even if a
 * key file is given; older versions lack the option that prevents it.
 */
export function keyFits(keyFile: string | Sh): Sh {
  return sh`{
  case $(cryptsetup --help 2>/dev/null) in *--disable-external-tokens*) option=--disable-external-tokens ;; *) option= ;; esac
  [ -f ${keyFile} ] && cryptsetup open --test-passphrase -q $option --key-file ${keyFile} "$device" </dev/null 2>/dev/null
}`;
}

/** Makes a missing key file, and flushes it before a container is locked with it. */
export function makeKeyFile(keyFile: string): Sh {
  return sh`parent_of ${keyFile} 1
safe_parents ${keyFile}
if [ ! -s ${keyFile} ]; then
  (umask 077 && head -c 64 /dev/urandom >"$K_TMP/key") && put_file "$K_TMP/key" ${keyFile} 0400 root root || exit 1
  rm -f "$K_TMP/key"
fi
chmod 0700 "$(dirname ${keyFile})" && sync || exit 1`;
}

/** The means to open a container at boot: a key file on the node, or the machine's TPM. */
export type LuksUnlock = "keyFile" | "tpm2";

/**
 * The container's line in crypttab(5). With `nofail` boot continues without the container. If the TPM does not open the
 * container, its unit fails without a question (`headless`).
 */
export function crypttabLine(uuid: string, { discard, unlock }: { discard: boolean; unlock: LuksUnlock }): string {
  const key = unlock === "tpm2" ? "- tpm2-device=auto,headless=true," : `${keyFileOf(uuid)} `;
  return `${mappingName(uuid)} UUID=${uuid} ${key}luks,nofail${discard ? ",discard" : ""}`;
}

/**
 * Options for a random key of 256 bits or more: guessing it is hopeless, so a slow key derivation is of no use
 * (cryptsetup-luksFormat(8), --pbkdf). systemd-cryptenroll does the same for its recovery keys.
 */
export const strongKey = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"] as const;
