/** `host:port`, with an IPv6 address in brackets (RFC 3986, 3.2.2). */
export function hostPort(host: string, port: number | string): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
