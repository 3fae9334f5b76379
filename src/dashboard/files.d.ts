// Vite turns an imported style sheet into a file that the page loads.
declare module '*.css' {}
