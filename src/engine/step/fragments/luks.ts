import { mappingName } from "../disk-names.ts";

/** Root's folder on the node; a container's files there are called by its UUID. */
export const luksFolder = "/etc/kcore/luks";

/** The file that opens the container at boot: 64 random bytes. */
export function keyFileOf(uuid: string): string {
  return `${luksFolder}/${uuid}.key`;
}

/** Its line in crypttab(5). Boot goes on without it: what lies on it has `nofail` as well. */
export function crypttabLine(uuid: string, { discard }: { readonly discard: boolean }): string {
  return `${mappingName(uuid)} UUID=${uuid} ${keyFileOf(uuid)} luks,nofail${discard ? ",discard" : ""}`;
}

/**
 * How a key of 256 bits or more is kept in a key slot: there is nothing to be guessed, so no time is spent on making guesses slow
 * (cryptsetup-luksFormat(8), --pbkdf; systemd-cryptenroll does the same with its recovery keys).
 */
export const strongKey = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"] as const;
