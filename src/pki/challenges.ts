/** A node signs this text with its new key to get a certificate for it; the nonce is the controller's (S-14). */
export function renewalChallenge(cluster: string, nodeId: string, nonce: string): string {
  return `kcore renewal ${cluster} ${nodeId} ${nonce}`;
}

/** A controller signs this text with the key of its new sub-CA; the nonce is the bastion's. */
export function subCaChallenge(cluster: string, controllerId: string, nonce: string): string {
  return `kcore sub-ca ${cluster} ${controllerId} ${nonce}`;
}

/** A controller signs this text with the key of its own new certificate; the nonce is the bastion's. */
export function controllerChallenge(cluster: string, controllerId: string, nonce: string): string {
  return `kcore controller ${cluster} ${controllerId} ${nonce}`;
}
