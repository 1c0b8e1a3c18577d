import { render } from 'preact';
import { App } from './app.tsx';
import { startKeys } from './keys.ts';
import { start } from './state.ts';
import './style.css';

startKeys();
start();
render(<App />, document.getElementById('app')!);
