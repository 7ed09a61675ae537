/** Keeps `clients` requests under way for so long; gives how many were acknowledged a second, and their latencies in ms. */
export async function load(
  clients: number,
  milliseconds: number,
  write: (client: number, index: number) => Promise<unknown>,
): Promise<{ readonly rate: number; readonly latencies: readonly number[] }> {
  const latencies: number[] = [];
  const began = performance.now();
  const end = began + milliseconds;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let index = 0; performance.now() < end; index++) {
        const sent = performance.now();
        await write(client, index);
        latencies.push(performance.now() - sent);
      }
    }),
  );
  return { rate: (latencies.length * 1000) / (performance.now() - began), latencies };
}
