/**
 * A tool that asks an API and waits for it.
 * Needs the package in package.json, and the secret that tooldock.yaml declares.
 */
import { defineTool } from 'toolgate';
import { z } from 'zod';

export const get_weather = defineTool({
  description: 'Get current weather for a city.',
  inputSchema: z.object({
    city: z.string().describe('City name, such as "Berlin" or "New York".'),
    units: z.enum(['metric', 'imperial']).default('metric').describe('Celsius or Fahrenheit.'),
  }),
  outputSchema: z.object({
    city: z.string(),
    temperature: z.number(),
    description: z.string(),
    humidity: z.number(),
  }),
  annotations: { readOnlyHint: true, openWorldHint: true },
  async execute({ city, units }, { env, signal }) {
    const query = new URLSearchParams({ q: city, units, appid: env.WEATHER_API_KEY ?? '' });
    const response = await fetch(`${env.WEATHER_BASE_URL}/data/2.5/weather?${query}`, { signal });
    if (!response.ok) throw new Error(`The weather service answers ${response.status}.`);
    const { name, main, weather } = (await response.json()) as {
      name: string;
      main: { temp: number; humidity: number };
      weather: { description: string }[];
    };
    return {
      city: name,
      temperature: main.temp,
      description: weather[0]?.description ?? '',
      humidity: main.humidity,
    };
  },
});
